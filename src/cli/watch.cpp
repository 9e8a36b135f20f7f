#include <CLI/CLI.hpp>
#include <chrono>
#include <ostream>
#include <thread>

#include "cli/client.h"
#include "cli/run_view.h"

namespace holdfast::cli {
namespace {

constexpr std::chrono::seconds kGrace{10}, kAway{30};

struct Options {
  Common common;
  std::string id, timeout;
};

void print_events(const Options& options, const json::Value& page, std::ostream& out) {
  const json::Value* events = page.find("events");
  if (!events || options.common.format == Format::ids) return;
  for (const json::Value& event : events->items) {
    if (options.common.format == Format::json) {
      out << event.raw << '\n';
    } else {
      out << event_line(event) << '\n';
    }
  }
  out.flush();
}

int finish(const Options& options, const json::Value& run, std::ostream& out) {
  if (options.common.format == Format::ids) {
    out << text_of(run, "id") << '\n';
  } else if (options.common.format == Format::json) {
    out << run.raw << '\n';
  } else {
    print_outcome(out, run);
  }
  return exit_of(run);
}

/// Events are read up to what the run's state was made of, so a run at rest has shown them all.
int watch(const Options& options, const Io& io) {
  using Clock = std::chrono::steady_clock;
  const auto timeout = read_timeout(options.timeout);
  if (!timeout) {
    io.err << "holdfast: " << timeout.error().message << '\n';
    return kBadInput;
  }
  const Client client = make_client(Listener::client, options.common, io);
  const std::string path = "/v1/runs/" + url_encode(options.id);
  auto run = fetch(client, path, io.err);
  if (!run) return run.error();
  const std::int64_t remaining_ms =
      run->root.find("remaining_ms") ? run->root.find("remaining_ms")->integer().value_or(0) : 0;
  const auto end =
      Clock::now() +
      std::chrono::milliseconds(timeout->value_or(remaining_ms + std::chrono::milliseconds(kGrace).count()));
  std::string after = "0";
  auto last_answer = Clock::now();
  while (true) {
    const bool last_look = at_rest(run->root) || Clock::now() >= end;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    const std::int64_t wait_ms = last_look ? 0 : std::clamp<std::int64_t>(left, 1, 30'000);
    auto reply = client.send(
        "GET", path + "/events?after=" + after + (wait_ms > 0 ? "&wait=" + std::to_string(wait_ms) : ""), {},
        {}, std::chrono::milliseconds(wait_ms + 10'000));
    if (reply && reply->status == 200) {
      const auto page = read_document(std::move(reply->body));
      if (!page) return report(page.error(), io.err);
      print_events(options, page->root, io.out);
      const std::string next = text_of(page->root, "next");
      const bool more = next != after;
      after = next;
      last_answer = Clock::now();
      if (last_look && (!more || Clock::now() >= end)) return finish(options, run->root, io.out);
      auto state = client.send("GET", path);
      if (state && state->status == 200) {
        auto document = read_document(std::move(state->body));
        if (!document) return report(document.error(), io.err);
        run = std::move(*document);
      }
      continue;
    }
    if (reply && reply->status < 500) return report(*reply, io.err);
    if (Clock::now() - last_answer > kAway || Clock::now() >= end)
      return reply ? report(*reply, io.err) : report(reply.error(), io.err);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
}

}  // namespace

void add_watch(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("watch", "Follow a run until it is settled or needs a person");
  command.add_option("run", options->id, "the run's id")->required()->option_text("RUN");
  command.add_option("--timeout", options->timeout, "follow this long at most; default: the run's deadline")
      ->option_text("DURATION");
  add_common(command, options->common);
  command.callback([options, &commands] {
    commands.action = [options, &commands] { return watch(*options, commands.io); };
  });
}

}  // namespace holdfast::cli
