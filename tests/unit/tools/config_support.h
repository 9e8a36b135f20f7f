#pragma once
// A configuration in a folder of its own, and an environment that the test makes.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "holdfast/tools/config.h"

namespace holdfast::test {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-config-XXXXXX").string();
    if (::mkdtemp(name.data())) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

using Variables = std::map<std::string, std::string>;

inline Result<tools::Config> load_text(const std::string& text, const Variables& variables = {},
                                       const std::string& name = "holdfast.yaml") {
  const Folder folder;
  return tools::load_config(folder.write(name, text), [&](const std::string& variable) -> const char* {
    const auto found = variables.find(variable);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace holdfast::test
