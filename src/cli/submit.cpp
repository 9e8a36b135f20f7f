#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <ostream>

#include "api/base64url.h"
#include "cli/client.h"
#include "cli/run_view.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/random.h"

namespace holdfast::cli {
namespace {

constexpr std::size_t kLongestFile = 64u << 20;

struct Options {
  Common common;
  std::string file, timeout;
  std::optional<std::string> key;
  bool wait = false;
};

Result<std::string> read_file(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  std::string text;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLongestFile) return std::unexpected(Error{"bad_input", path + " is too large", ""});
  }
  if (!in.eof()) return std::unexpected(Error{"bad_input", "cannot read " + path, ""});
  return text;
}

/// So that the same command can be given again with the same key when its answer is lost.
std::string random_key() {
  const auto random = system_random();
  std::string bytes;
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t bits = random->next();
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(bits >> shift);
  }
  return "cli-" + api::base64url(bytes);
}

int fail(std::ostream& err, const std::string& message) {
  err << "holdfast: " << message << '\n';
  return kBadInput;
}

void print(const Options& options, const json::Value& run, std::ostream& out) {
  if (options.common.format == Format::ids) {
    out << text_of(run, "id") << '\n';
  } else if (options.common.format == Format::json) {
    out << run.raw << '\n';
  } else {
    print_outcome(out, run);
  }
}

int submit(const Options& options, const Io& io) {
  const auto timeout = read_timeout(options.timeout);
  if (!timeout) return fail(io.err, timeout.error().message);
  if (options.key && !is_key(*options.key))
    return fail(io.err, "--key must be 1 to 255 printable ASCII characters, not all blanks");
  const auto text = read_file(options.file);
  if (!text) return fail(io.err, text.error().message);
  if (const auto parsed = json::parse(*text, json::Limits{.depth = 512}); !parsed) {
    return fail(io.err, options.file + " is not JSON: " + parsed.error().message);
  }
  const Client client = make_client(Listener::client, options.common, io);
  const std::string key = options.key ? *options.key : random_key();
  auto reply = client.send("POST", "/v1/runs", *text, {"Idempotency-Key: " + key});
  if (!reply) {
    const int code = report(reply.error(), io.err);
    io.err << "It may have been accepted. Repeat with --key " << key << " to be sure that it runs once.\n";
    return code;
  }
  if (reply->status != 200 && reply->status != 201) return report(*reply, io.err);
  auto run = read_document(std::move(reply->body));
  if (!run) return report(run.error(), io.err);
  if (!options.wait) {
    print(options, run->root, io.out);
    return kOk;
  }
  const auto end = wait_for_run(client, text_of(run->root, "id"), WaitOptions{*timeout}, io.err);
  if (!end) return end.error();
  print(options, end->root, io.out);
  return exit_of(end->root);
}

}  // namespace

void add_submit(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("submit", "Submit a run");
  command.add_option("file", options->file, "the submission, JSON; - for standard input")
      ->required()
      ->option_text("FILE");
  command.add_option("--key", options->key, "submit key: the same key and file are the same run")
      ->option_text("KEY");
  command.add_flag("--wait", options->wait, "wait until the run is settled or needs a person");
  command.add_option("--timeout", options->timeout, "wait this long at most; default: the run's deadline")
      ->option_text("DURATION");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return submit(*options, commands.io); };
  });
}

}  // namespace holdfast::cli
