#pragma once
// The tools that may be called, and how a step's arguments become the exact request.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/run/run.h"
#include "holdfast/tools/config.h"

namespace holdfast::tools {

/// Thread-safe. Holds the configuration, and what live MCP servers said about tools that it does not name. Configurations that
/// are no longer in force are kept, so that every reference and pointer handed out lives as long as the catalog.
class Catalog {
 public:
  explicit Catalog(Config config);

  /// The one that is in force now.
  [[nodiscard]] const Config& config() const { return current_.load()->config; }
  /// Puts `next` in force. What has been learned is kept for servers that are reached as before, and secrets of earlier
  /// configurations are taken out of texts as long as the process lives. Error `bad_config` after a thousand times.
  [[nodiscard]] Result<void> replace(Config next);
  /// nullptr when it is not configured.
  [[nodiscard]] const ServerConfig* server(std::string_view name) const;
  /// The rules of a tool; nullptr when the server is not configured, or is plain HTTP and names no such tool.
  /// An MCP server's unnamed tool is a plain write, or a read where the server is trusted and said
  /// readOnlyHint. The pointee lives as long as the catalog.
  [[nodiscard]] const ToolConfig* find(std::string_view server, std::string_view tool) const;
  /// What tools/list of a live server said, as reached by `server`; unnamed tools of a trusted server become reads by it. Ignored
  /// when the name stands for another server by now.
  void learn(const ServerConfig& server, std::string_view tool, bool read_only_hint);

  /// The exact request of a step: path arguments percent-encoded, the rest as JSON body (query for GET, HEAD
  /// and DELETE), the key inside the arguments where the tool wants it there. `args` is the resolved JSON
  /// object, `key` empty for none. Error `bad_arguments` with a pointer into args.
  [[nodiscard]] Result<run::FrozenRequest> freeze(std::string_view server, std::string_view tool,
                                                  std::string_view args, std::string_view key) const;
  /// The effective target: `named` if not empty, else the tool's template filled from the resolved args, else
  /// `server/tool`.
  [[nodiscard]] Result<std::string> target(std::string_view server, std::string_view tool,
                                           std::string_view named, std::string_view args) const;

 private:
  /// Both readings of a tool that the file leaves open, so that a pointer once handed out stays good when the
  /// server changes its mind.
  struct Learned {
    bool read_only = false;
    std::unique_ptr<ToolConfig> as_read, as_write;
  };
  struct Generation {
    Config config;
    std::map<std::pair<std::string, std::string>, Learned, std::less<>> learned;
  };
  static const ServerConfig* server_in(const Generation& in, std::string_view name);
  const ToolConfig* find_in(Generation& in, std::string_view server, std::string_view tool) const;
  const ToolConfig* learned(Generation& in, const ServerConfig& server, const ToolConfig& base,
                            std::string_view tool) const;

  mutable std::shared_mutex mutex_;  // of what was learned, and of the list
  std::vector<std::unique_ptr<Generation>> generations_;
  std::atomic<Generation*> current_;
};

}  // namespace holdfast::tools
