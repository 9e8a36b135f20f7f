// breakers, tools and backup.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <ostream>

#include "cli/client.h"
#include "cli/table.h"

namespace holdfast::cli {
namespace {

int list_breakers(const Common& common, const Io& io) {
  const auto items = fetch_items(make_client(Listener::admin, common, io), "/v1/breakers", 10'000, io.err);
  if (!items) return items.error();
  if (common.format == Format::table && items->list.empty()) {
    io.out << "Every circuit is closed.\n";
    return kOk;
  }
  print_list(
      io.out, common.format, items->list, {"SERVER", "TOOL", "STATE", "SINCE", "UNTIL", "FORCED BY", "WHY"},
      [](const json::Value& b) {
        const std::string why = text_of(b, "why");
        return std::vector{text_of(b, "server"),
                           text_of(b, "tool"),
                           text_of(b, "state"),
                           short_time(text_of(b, "since")),
                           short_time(text_of(b, "until")),
                           text_of(b, "by"),
                           why.empty() ? text_of(b, "last_cause") : why};
      },
      "server");
  return kOk;
}

struct ForceOptions {
  Common common;
  std::string target, reason, span;
  bool open = false;
};

int force(const ForceOptions& options, const Io& io) {
  std::string path = "/v1/breakers/";
  const auto slash = options.target.find('/');
  path += url_encode(options.target.substr(0, slash));
  if (slash != std::string::npos) path += "/" + url_encode(options.target.substr(slash + 1));
  path += options.open ? "/open" : "/close";
  std::string body;
  json::Writer w(body);
  w.begin_object();
  w.field("reason", options.reason);
  if (!options.span.empty()) w.field("for", options.span);
  w.end_object();
  auto reply = make_client(Listener::admin, options.common, io).send("POST", path, body);
  if (!reply) return report(reply.error(), io.err);
  if (reply->status != 200) return report(*reply, io.err);
  if (options.common.format == Format::json) {
    io.out << reply->body << '\n';
  } else {
    io.out << options.target << (options.open ? " is held open.\n" : " is closed and automatic again.\n");
  }
  return kOk;
}

int list_tools(const Common& common, const Io& io) {
  const auto items = fetch_items(make_client(Listener::admin, common, io), "/v1/tools", 10'000, io.err);
  if (!items) return items.error();
  print_list(
      io.out, common.format, items->list,
      {"SERVER", "TOOL", "EFFECT", "REPEAT", "DEADLINE", "ATTEMPTS", "CALLS", "TIMEOUTS", "P50", "P95", "P99",
       "SUGGESTED"},
      [](const json::Value& t) {
        const auto time = [&t](std::string_view name) {
          const json::Value* ms = t.find(name);
          return ms && ms->integer() ? std::to_string(*ms->integer()) + "ms" : std::string{};
        };
        const json::Value* rule = t.find("sized");
        const std::string sized = !rule || !rule->find("from_samples") ? ""
                                  : text_of(*rule, "from_samples") == "true" ? " (sized)"
                                                                             : " (ceiling)";
        const std::string calls = text_of(t, "samples");
        return std::vector{text_of(t, "server"),
                           text_of(t, "tool"),
                           text_of(t, "effect"),
                           text_of(t, "kind"),
                           time("deadline_ms") + sized,
                           text_of(t, "max_attempts"),
                           calls == "0" ? "never measured" : calls,
                           calls == "0" ? "" : text_of(t, "timeouts"),
                           time("p50_ms"),
                           time("p95_ms"),
                           time("p99_ms"),
                           time("suggested_deadline_ms")};
      },
      "tool");
  return kOk;
}

struct BackupOptions {
  Common common;
  std::string file;
};

int backup(const BackupOptions& options, const Io& io) {
  std::error_code failed;
  const std::string path = std::filesystem::absolute(options.file, failed).lexically_normal().string();
  if (failed) {
    io.err << "holdfast: cannot find the working directory\n";
    return kBadInput;
  }
  std::string body;
  json::Writer w(body);
  w.begin_object();
  w.field("path", path);
  w.end_object();
  auto reply = make_client(Listener::admin, options.common, io)
                   .send("POST", "/v1/backup", body, {}, std::chrono::minutes(30));
  if (!reply) return report(reply.error(), io.err);
  if (reply->status != 200) return report(*reply, io.err);
  if (options.common.format == Format::json) {
    io.out << reply->body << '\n';
  } else {
    io.out << path << '\n';
  }
  return kOk;
}

}  // namespace

void add_breakers(CLI::App& app, Commands& commands) {
  auto common = std::make_shared<Common>();
  CLI::App& command = *app.add_subcommand("breakers", "List circuit breakers, or force one open or closed");
  add_common(command, *common);
  command.callback([common, &commands, &command] {
    if (!command.get_subcommands().empty()) return;
    commands.action = [common, &commands] { return list_breakers(*common, commands.io); };
  });
  for (const bool open : {true, false}) {
    auto options = std::make_shared<ForceOptions>();
    options->open = open;
    CLI::App& forced = *command.add_subcommand(
        open ? "open" : "close", open ? "Let nothing pass until it is closed" : "Close and clear it");
    forced.add_option("target", options->target, "the server, or one of its tools")
        ->required()
        ->option_text("SERVER[/TOOL]");
    forced.add_option("--reason", options->reason, "why; kept in the audit log")
        ->required()
        ->option_text("TEXT");
    if (open)
      forced.add_option("--for", options->span, "how long; default: until it is closed")
          ->option_text("DURATION");
    add_common(forced, options->common);
    forced.callback([options, &commands] {
      commands.action = [options, &commands] { return force(*options, commands.io); };
    });
  }
}

void add_tools(CLI::App& app, Commands& commands) {
  auto common = std::make_shared<Common>();
  CLI::App& command = *app.add_subcommand("tools", "List tools with their rules and how long they take");
  add_common(command, *common);
  command.callback([common, &commands] {
    commands.action = [common, &commands] { return list_tools(*common, commands.io); };
  });
}

void add_backup(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<BackupOptions>();
  CLI::App& command =
      *app.add_subcommand("backup", "Have the running server write a consistent copy of its database");
  command.add_option("file", options->file, "the copy; must not exist yet")->required()->option_text("FILE");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return backup(*options, commands.io); };
  });
}

}  // namespace holdfast::cli
