// Commands that need no server: check, token and version.
#include <openssl/rand.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "api/base64url.h"
#include "cli/command_line.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/intent_key.h"
#include "holdfast/tools/config.h"

namespace holdfast::cli {
namespace {

int check(const std::string& file, const Io& io) {
  const auto config = tools::load_config(file, io.env);
  if (!config) {
    io.err << "holdfast: " << config.error().message << '\n';
    return kBadInput;
  }
  io.out << tools::describe(*config);
  return kOk;
}

struct TokenOptions {
  std::string scope, name;
};

int create_token(const TokenOptions& options, const Io& io) {
  if (!is_name(options.name)) {
    io.err << "holdfast: --name must be 1 to 128 letters, digits, '_', '.' or '-'\n";
    return kBadInput;
  }
  std::array<unsigned char, 32> secret{};
  if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1) {
    io.err << "holdfast: the system has no randomness to make a token from\n";
    return kFailed;
  }
  const std::string bytes(secret.begin(), secret.end());
  const std::string token = "hf_" + options.name + "." + api::base64url(bytes);
  io.out << "Token, shown once:\n\n  " << token
         << "\n\nLine for the configuration, under auth: tokens:\n\n  - {name: " << options.name
         << ", scope: " << options.scope << ", sha256: " << sha256_hex(token) << "}\n";
  return kOk;
}

}  // namespace

void add_check(CLI::App& app, Commands& commands) {
  auto file = std::make_shared<std::string>();
  CLI::App& command =
      *app.add_subcommand("check", "Check a configuration and print every effective value with its source");
  command.add_option("file", *file, "the configuration")->required()->option_text("FILE");
  command.callback(
      [file, &commands] { commands.action = [file, &commands] { return check(*file, commands.io); }; });
}

void add_token(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App& command = *app.add_subcommand("token", "Make access tokens");
  command.require_subcommand(1);
  CLI::App& create =
      *command.add_subcommand("create", "Make a token and the configuration line that lets it in");
  create.add_option("--scope", options->scope, "client: submit and read runs; operator: everything")
      ->required()
      ->check(CLI::IsMember({"client", "operator"}))
      ->option_text("client|operator");
  create.add_option("--name", options->name, "who it is for; the owner of its runs")
      ->required()
      ->option_text("NAME");
  create.callback([options, &commands] {
    commands.action = [options, &commands] { return create_token(*options, commands.io); };
  });
}

void add_version(CLI::App& app, Commands& commands) {
  CLI::App& command = *app.add_subcommand("version", "Print the version");
  command.callback([&commands] {
    commands.action = [&commands] {
      commands.io.out << "holdfast " << HOLDFAST_VERSION << '\n';
      return kOk;
    };
  });
}

}  // namespace holdfast::cli
