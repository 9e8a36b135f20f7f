// unknowns and resolve: the operator's work list and the verdicts on it.
#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/client.h"
#include "cli/table.h"

namespace holdfast::cli {
namespace {

struct ListOptions {
  Common common;
  std::string server, tool;
  bool all = false;
};

std::string member_of(const json::Value& object, std::string_view outer, std::string_view inner) {
  const json::Value* value = object.find(outer);
  return value ? text_of(*value, inner) : std::string{};
}

std::string age(const json::Value& entry) {
  const json::Value* ms = entry.find("age_ms");
  return ms && ms->integer() ? spoken(*ms->integer()) : std::string{};
}

int list(const ListOptions& options, const Io& io) {
  const Client client = make_client(Listener::admin, options.common, io);
  std::string path = options.all ? "/v1/unknowns?state=all" : "/v1/unknowns?state=open";
  if (!options.server.empty()) path += "&server=" + url_encode(options.server);
  if (!options.tool.empty()) path += "&tool=" + url_encode(options.tool);
  const auto items = fetch_items(client, path, 10'000, io.err);
  if (!items) return items.error();
  if (options.common.format == Format::table && items->list.empty()) {
    io.out << "No write waits for a verdict.\n";
    return kOk;
  }
  print_list(io.out, options.common.format, items->list,
             {"WRITE", "AGE", "RUN", "STEP", "TOOL", "TARGET", "REASON", "SENT", "WHAT TO LOOK AT"},
             [](const json::Value& entry) {
               const std::string sent = member_of(entry, "evidence", "bytes_sent");
               return std::vector{text_of(entry, "id"),
                                  age(entry),
                                  text_of(entry, "run"),
                                  text_of(entry, "step"),
                                  text_of(entry, "server") + "/" + text_of(entry, "tool"),
                                  text_of(entry, "target"),
                                  text_of(entry, "reason"),
                                  sent.empty() ? "" : sent + " bytes",
                                  text_of(entry, "suggested_check")};
             });
  return kOk;
}

struct ResolveOptions {
  Common common;
  std::string id, note, result, deadline;
  bool landed = false, not_landed = false, abandon = false;
};

int fail(std::ostream& err, const std::string& message) {
  err << "holdfast: " << message << '\n';
  return kBadInput;
}

int resolve(const ResolveOptions& options, const Io& io) {
  if (!options.result.empty()) {
    if (!options.landed) return fail(io.err, "--result goes with --landed only");
    if (const auto parsed = json::parse(options.result); !parsed)
      return fail(io.err, "--result is not JSON: " + parsed.error().message);
  }
  std::string body;
  json::Writer w(body);
  w.begin_object();
  w.field("verdict", options.landed ? "landed" : options.not_landed ? "not_landed" : "abandon");
  w.field("note", options.note);
  if (!options.result.empty()) w.raw_field("result", options.result);
  if (!options.deadline.empty()) w.field("deadline", options.deadline);
  w.end_object();
  const Client client = make_client(Listener::admin, options.common, io);
  auto reply = client.send("POST", "/v1/unknowns/" + url_encode(options.id) + "/resolve", body);
  if (!reply) return report(reply.error(), io.err);
  if (reply->status != 200) return report(*reply, io.err);
  const auto entry = read_document(std::move(reply->body));
  if (!entry) return report(entry.error(), io.err);
  if (options.common.format == Format::json) {
    io.out << entry->root.raw << '\n';
  } else if (options.common.format == Format::ids) {
    io.out << text_of(entry->root, "id") << '\n';
  } else {
    io.out << options.id << " is settled: " << member_of(entry->root, "resolution", "verdict") << ". Run "
           << text_of(entry->root, "run") << " goes on from there.\n";
  }
  return kOk;
}

}  // namespace

void add_unknowns(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<ListOptions>();
  CLI::App& command = *app.add_subcommand("unknowns", "List writes that wait for a verdict, oldest first");
  command.add_option("--server", options->server, "only writes at this server")->option_text("NAME");
  command.add_option("--tool", options->tool, "only writes by this tool")->option_text("NAME");
  command.add_flag("--all", options->all, "settled ones too");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return list(*options, commands.io); };
  });
}

void add_resolve(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<ResolveOptions>();
  CLI::App& command = *app.add_subcommand("resolve", "Say what became of an unknown write");
  command.add_option("write", options->id, "the write's id, as `unknowns` shows it")
      ->required()
      ->option_text("WRITE");
  CLI::Option_group& verdict = *command.add_option_group("verdict", "exactly one");
  verdict.add_flag("--landed", options->landed, "it happened: the step succeeds");
  verdict.add_flag("--not-landed", options->not_landed, "it did not happen: it is sent again");
  verdict.add_flag("--abandon", options->abandon, "nobody will know: the run stops");
  verdict.require_option(1);
  command.add_option("--note", options->note, "how you know; kept in the audit log")
      ->required()
      ->option_text("TEXT");
  command.add_option("--result", options->result, "with --landed: the step's result")->option_text("JSON");
  command.add_option("--deadline", options->deadline, "a new deadline for a run whose own has passed")
      ->option_text("DURATION");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return resolve(*options, commands.io); };
  });
}

}  // namespace holdfast::cli
