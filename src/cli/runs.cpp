// get, list and cancel.
#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/client.h"
#include "cli/run_view.h"
#include "cli/table.h"

namespace holdfast::cli {
namespace {

struct RunOptions {
  Common common;
  std::string id, reason;
};

int print_found(const RunOptions& options, const Client& client, const json::Value& run, const Io& io) {
  if (options.common.format == Format::ids) {
    io.out << text_of(run, "id") << '\n';
  } else if (options.common.format == Format::json) {
    io.out << run.raw << '\n';
  } else {
    const auto attempts =
        fetch_items(client, "/v1/runs/" + url_encode(options.id) + "/attempts", 2000, io.err);
    if (!attempts) return attempts.error();
    print_run(io.out, run, attempts->list);
  }
  return exit_of(run);
}

int get(const RunOptions& options, const Io& io) {
  const Client client = make_client(Listener::client, options.common, io);
  const auto run = fetch(client, "/v1/runs/" + url_encode(options.id), io.err);
  return run ? print_found(options, client, run->root, io) : run.error();
}

int cancel(const RunOptions& options, const Io& io) {
  const Client client = make_client(Listener::client, options.common, io);
  std::string body;
  json::Writer w(body);
  w.begin_object();
  w.field("reason", options.reason);
  w.end_object();
  auto reply = client.send("POST", "/v1/runs/" + url_encode(options.id) + "/cancel", body);
  if (!reply) return report(reply.error(), io.err);
  if (reply->status != 200) return report(*reply, io.err);
  const auto run = read_document(std::move(reply->body));
  if (!run) return report(run.error(), io.err);
  if (options.common.format == Format::ids) {
    io.out << text_of(run->root, "id") << '\n';
  } else if (options.common.format == Format::json) {
    io.out << run->root.raw << '\n';
  } else {
    print_outcome(io.out, run->root);
  }
  return kOk;
}

struct ListOptions {
  Common common;
  std::string status, name;
  std::vector<std::string> labels;
  std::size_t limit = 50;
};

std::string steps_done(const json::Value& run) {
  const json::Value* steps = run.find("steps");
  if (!steps) return {};
  const auto done = std::ranges::count_if(
      steps->items, [](const json::Value& s) { return text_of(s, "status") == "succeeded"; });
  return std::to_string(done) + "/" + std::to_string(steps->items.size());
}

int list(const ListOptions& options, const Io& io) {
  const Client client = make_client(Listener::client, options.common, io);
  std::string path = "/v1/runs";
  const auto add = [&path](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    path += path.find('?') == std::string::npos ? '?' : '&';
    path += std::string(name) + "=" + url_encode(value);
  };
  add("status", options.status);
  add("name", options.name);
  for (const std::string& label : options.labels) add("label", label);
  const auto items = fetch_items(client, path, options.limit, io.err);
  if (!items) return items.error();
  print_list(io.out, options.common.format, items->list,
             {"RUN", "STATUS", "NAME", "STEPS", "CREATED", "DETAIL"}, [](const json::Value& run) {
               return std::vector{text_of(run, "id"),
                                  text_of(run, "status"),
                                  text_of(run, "name"),
                                  steps_done(run),
                                  short_time(text_of(run, "created_at")),
                                  text_of(run, "detail")};
             });
  return kOk;
}

}  // namespace

void add_get(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("get", "Show a run with its steps and attempts");
  command.add_option("run", options->id, "the run's id")->required()->option_text("RUN");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return get(*options, commands.io); };
  });
}

void add_cancel(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("cancel", "Cancel a run");
  command.add_option("run", options->id, "the run's id")->required()->option_text("RUN");
  command.add_option("--reason", options->reason, "why")->option_text("TEXT");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return cancel(*options, commands.io); };
  });
}

void add_list(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<ListOptions>();
  CLI::App& command = *app.add_subcommand("list", "List runs, newest first");
  command.add_option("--status", options->status, "only runs with this status")->option_text("STATUS");
  command.add_option("--name", options->name, "only runs with this name")->option_text("NAME");
  command.add_option("--label", options->labels, "only runs with this label; may be given again")
      ->option_text("NAME:VALUE");
  command.add_option("--limit", options->limit, "how many at most")
      ->check(CLI::Range(1, 1'000'000))
      ->option_text("N");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return list(*options, commands.io); };
  });
}

}  // namespace holdfast::cli
