#include "support/surface.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "api/auth.h"
#include "api/hub.h"
#include "api/metrics.h"
#include "api/routes.h"
#include "holdfast/core/intent_key.h"
#include "holdfast/core/json.h"
#include "http/admission.h"
#include "http/head.h"
#include "http/processor.h"
#include "support/forwarding_ledger.h"
#include "support/sim_vfs.h"

namespace holdfast::testing {

namespace {

constexpr Instant kBegin{1'800'000'000'000};
constexpr int kMostRuns = 6;  // of one handler: who reads an endless answer hangs up after so many pieces
constexpr std::string_view kSecret = "planted-secret-that-nobody-sends";

const std::string kClientToken = "hf_client.7s2Yx0Q4m1VdK9eRtUoPzLbNcGhJfAwXiE5q8n3T6k";
const std::string kOperatorToken = "hf_boss.Qz8WmN5vRx1TbY4uKc7PdL0gHs3JfEaVi9oX2yU6nAe";

constexpr const char* kConfig = R"(
defaults: {deadline: 3s, max_attempts: 3, backoff: {base: 10m, cap: 10m}, run_deadline: 24h}
limits: {body_bytes: 65536}
servers:
  api:
    http: {base_url: "http://127.0.0.1:9"}
    headers: {X-Key: "${env:SECRET}"}
    tools:
      read: {effect: read, request: {method: GET, path: "/read/{m}"}, fallback: {cached: {max_age: 1h}}}
      plain: {request: {method: POST, path: /plain}}
      keyed: {request: {method: POST, path: /keyed}, key: {header: Idempotency-Key}}
      sick: {effect: read, request: {method: POST, path: /sick}}
      broken: {effect: read, request: {method: POST, path: /broken}}
      slow: {request: {method: POST, path: /slow}}
  mcp:
    mcp: {url: "http://127.0.0.1:9/mcp"}
    tools:
      read: {effect: read}
)";

/// Runs of every kind: $0 has succeeded, $1 has an unknown write, $2 is open, $3 waits, $4 was cancelled, $5 has failed and belongs to the operator.
struct Seed {
  Surface::Listener listener;
  std::string_view path, token, body;
};
constexpr Seed kSeeds[] = {
    {Surface::Listener::client, "/v1/runs", "$c", R"({"name":"done","steps":[{"id":"a","server":"api","tool":"read","args":{"m":"x"}}],"result":{"r":"${a}"}})"},
    {Surface::Listener::client, "/v1/runs", "$c", R"({"name":"lost","labels":{"k":"v"},"steps":[{"id":"a","server":"api","tool":"plain","args":{"m":"x"}}]})"},
    {Surface::Listener::client, "/v1/runs", "$c", R"({"name":"open","mode":"open"})"},
    {Surface::Listener::client, "/v1/runs/run_$2/steps", "$c", R"({"id":"a","server":"api","tool":"keyed","args":{"m":"x"}})"},
    {Surface::Listener::client, "/v1/runs", "$c", R"({"name":"waits","steps":[{"id":"a","server":"api","tool":"sick","args":{"m":"x"}},{"id":"b","server":"api","tool":"plain","args":{"m":"${a}"},"after":["a"]}]})"},
    {Surface::Listener::client, "/v1/runs", "$c", R"({"name":"cancelled","steps":[{"id":"a","server":"api","tool":"sick","args":{"m":"x"}}]})"},
    {Surface::Listener::client, "/v1/runs/run_$4/cancel", "$c", R"({"reason":"enough"})"},
    {Surface::Listener::admin, "/v1/runs", "$o", R"({"name":"failed","steps":[{"id":"a","server":"api","tool":"broken"}]})"},
    {Surface::Listener::admin, "/v1/breakers/api/slow/open", "$o", R"({"reason":"trial"})"},
};

std::string request_of(const Seed& seed) {
  return "POST " + std::string(seed.path) + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + std::string(seed.token) +
         "\r\nContent-Length: " + std::to_string(seed.body.size()) + "\r\n\r\n" + std::string(seed.body);
}

tools::Config read_config() {
  const std::string path = "/tmp/holdfast-surface-" + std::to_string(::getpid()) + ".yaml";
  std::ofstream(path) << kConfig;
  auto read = tools::load_config(path, [](const std::string&) { return kSecret.data(); });
  ::unlink(path.c_str());
  if (!read) throw std::runtime_error(read.error().message);
  read->tokens = {{"client", tools::Token::Scope::client, sha256_hex(kClientToken)},
                  {"boss", tools::Token::Scope::operate, sha256_hex(kOperatorToken)}};
  return std::move(*read);
}

const tools::Config& config() {
  static const tools::Config read = read_config();
  return read;
}

struct HandClock final : Clock {
  [[nodiscard]] Instant now() const override { return at; }
  Instant at = kBegin;
};

/// Answers each tool by its name when it is its turn: `slow` never.
class Tools final : public tools::Transport {
 public:
  void start(tools::Call call) override { waiting_.emplace_back(call.id, call.server == "mcp" ? "over mcp" : call.tool); }
  void cancel(tools::CallId id) override {
    const auto found = std::ranges::find(waiting_, id, &std::pair<tools::CallId, std::string>::first);
    if (found != waiting_.end()) found->second = "cancelled";
  }
  void stop() override {}

  /// True when any call came to its end.
  bool answer(tools::CallSink& sink) {
    const auto calls = std::exchange(waiting_, {});
    for (const auto& [id, tool] : calls) {
      if (tool == "slow")
        waiting_.emplace_back(id, tool);
      else
        sink.finished(id, evidence_of(tool));
    }
    return waiting_.size() < calls.size();
  }

 private:
  static Evidence evidence_of(std::string_view tool) {
    Evidence evidence;
    evidence.phase = Phase::tx_all;
    evidence.bytes_sent = 80;
    if (tool == "plain" || tool == "cancelled") {
      evidence.failure = tool == "plain" ? Failure::connection_lost : Failure::cancelled;
      return evidence;
    }
    evidence.phase = Phase::parsed;
    evidence.answer = tool == "over mcp" ? Answer::result : Answer::http;
    evidence.http_status = tool == "sick" ? 503 : tool == "broken" ? 404 : 200;
    evidence.result = R"({"ok":true,"text":"line\r\nend \u0000"})";
    return evidence;
  }
  std::vector<std::pair<tools::CallId, std::string>> waiting_;
};

struct CountingLedger final : ForwardingLedger {
  using ForwardingLedger::ForwardingLedger;
  Result<ledger::Committed> commit(ledger::Batch& batch) override {
    ++commits;
    return ForwardingLedger::commit(batch);
  }
  int commits = 0;
};

/// The engine's commands, waited for by turning it.
class TurningCommands final : public api::Commands {
 public:
  explicit TurningCommands(engine::Engine& engine) : engine_(engine) {}

  void submit(run::Run planned, engine::Answer<engine::Submitted> answer) override {
    engine_.submit(std::move(planned), std::move(answer));
  }
  Result<std::optional<engine::Submitted>> replay(std::string owner, std::string key, std::string digest) override {
    return wait_for<std::optional<engine::Submitted>>(&engine::Engine::replay, std::move(owner), std::move(key), std::move(digest));
  }
  Result<engine::StepAdded> add_step(std::string run_id, std::string owner, std::string step_id, std::string digest,
                                     engine::Engine::Bind bind) override {
    return wait_for<engine::StepAdded>(&engine::Engine::add_step, std::move(run_id), std::move(owner), std::move(step_id), std::move(digest),
                                       std::move(bind));
  }
  Result<void> finish(std::string run_id, std::string owner, run::RunStatus status, std::string result, std::string reason,
                      std::string digest) override {
    return wait_for<void>(&engine::Engine::finish, std::move(run_id), std::move(owner), status, std::move(result), std::move(reason),
                          std::move(digest));
  }
  Result<void> cancel(std::string run_id, std::string owner, std::string who, std::string reason) override {
    return wait_for<void>(&engine::Engine::cancel, std::move(run_id), std::move(owner), std::move(who), std::move(reason));
  }
  Result<void> resolve(std::string write_id, engine::Engine::Verdict verdict) override {
    return wait_for<void>(&engine::Engine::resolve, std::move(write_id), std::move(verdict));
  }
  Result<Breaker> force_breaker(std::string server, std::string tool, bool open, std::string who, std::string why,
                                std::optional<Duration> span) override {
    return wait_for<Breaker>(&engine::Engine::force_breaker, std::move(server), std::move(tool), open, std::move(who), std::move(why), span);
  }
  Result<void> note(std::string who, std::string action, std::string subject, std::string why) override {
    ledger::AuditEntry entry{.who = std::move(who), .action = std::move(action), .subject = std::move(subject), .why = std::move(why)};
    return wait_for<void>(&engine::Engine::note, std::move(entry));
  }
  bool ready() const override { return engine_.ready(); }
  bool storage_ok() const override { return engine_.storage_ok(); }
  /// No file is made for whatever path a fuzzer names.
  Result<void> backup(const std::string&) override { return {}; }

 private:
  template <class T, class Command, class... Arguments>
  Result<T> wait_for(Command command, Arguments... arguments) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    (engine_.*command)(std::move(arguments)..., [answer](Result<T> result) { *answer = std::move(result); });
    for (int turns = 0; turns < 4 && !*answer; ++turns) (void)engine_.turn();
    if (!*answer) throw std::logic_error("a command is never answered");
    return std::move(**answer);
  }
  engine::Engine& engine_;
};

/// A listener as the poller drives it, but for the socket.
class Front final : public http::Server {
 public:
  Front(HandClock& clock, http::Options options, Surface::Reached& reached)
      : clock_(clock), options_(std::move(options)), processor_(topics_, Duration{75'000}), reached_(reached) {}

  void route(std::string method, std::string pattern, http::Access access, http::Handler handler, http::Glance glance) override {
    reached_.try_emplace(method + " " + pattern);
    router_.add(std::move(method), std::move(pattern), access, std::move(handler), std::move(glance));
  }
  Result<std::string> listen() override { return "nowhere"; }
  void wake(std::string_view topic) override { woken_ = woken_ || !topics_.take(topic).empty(); }
  void stop_accepting() override {}
  void stop() override {}

  /// One request of `bytes`, which loses it. nullopt: nothing more comes of this connection. `pass` lets the rest of the process do its work.
  template <class Pass>
  std::optional<Surface::Answer> serve(std::string_view& bytes, Pass&& pass) {
    http::HeadScanner scanner;
    const auto length = scanner.scan(bytes);
    if (closed_ || (length && *length == 0)) return std::nullopt;
    if (!length) return refused(length.error());
    auto admitted = http::admit(bytes.substr(scanner.start(), *length - scanner.start()), router_, options_, [] { return 0; });
    if (!admitted) return refused(admitted.error());
    bytes.remove_prefix(*length);
    if (bytes.size() < admitted->body_length) return std::nullopt;
    admitted->exchange->request.body = bytes.substr(0, admitted->body_length);
    bytes.remove_prefix(admitted->body_length);
    return answered(*admitted->exchange, pass);
  }
  void open() { closed_ = false; }

 private:
  Surface::Answer refused(const http::Refusal& refusal) {
    closed_ = true;
    return {.route = {}, .method = {}, .bytes = processor_.render(http::to_response(refusal))};
  }

  template <class Pass>
  Surface::Answer answered(http::Exchange& exchange, Pass&& pass) {
    exchange.connection = 1;
    Surface::Answer answer{.route = exchange.route->method + " " + exchange.route->pattern, .method = exchange.request.method, .bytes = {}};
    for (int runs = 0; runs < kMostRuns; ++runs) {
      woken_ = false;
      auto glanced = exchange.route->glance ? processor_.glance(exchange) : std::nullopt;
      const http::Step step = glanced ? std::move(*glanced) : processor_.run(exchange);
      answer.bytes += step.bytes;
      if (step.tail) answer.bytes += *step.tail;
      if (step.next == http::Step::Next::park && !woken_) pass();
      topics_.unwatch(exchange.connection, exchange.topics);
      exchange.topics.clear();
      closed_ = step.next == http::Step::Next::close;
      if (step.next != http::Step::Next::park) break;
      exchange.request.resumed = true;
      exchange.request.waited_out = !woken_;
      if (!woken_) clock_.at = std::max(step.until, clock_.at + Duration{10});
      closed_ = true;  // unless it comes to its end
    }
    if (answer.bytes.size() >= 12) reached_[answer.route].insert(std::atoi(answer.bytes.c_str() + 9));
    return answer;
  }

  HandClock& clock_;
  http::Options options_;
  http::Router router_;
  http::Topics topics_;
  http::Processor processor_;
  Surface::Reached& reached_;
  bool woken_ = false, closed_ = false;
};

http::Options options_of(const tools::Config& config) {
  http::Options options;
  options.body_bytes = config.limits.body_bytes;
  options.authenticate = api::authenticator(config.tokens);
  return options;
}

}  // namespace

/// One life of the server, made as cli/serve.cpp makes it.
struct Surface::World {
  /// Another seed for each life that goes on with the same ledger: ids are drawn from it.
  World(std::string image, std::uint64_t seed, Reached* reached)
      : disk(1),
        vfs(disk),
        catalog(config()),
        metrics(clock),
        random(seeded_random(seed)),
        opened(open(std::move(image))),
        ledger(*opened.ledger),
        engine(clock, *random, ledger, catalog, transport, hub, metrics, engine::Options{100, Duration{1'000}}),
        commands(engine),
        service{clock, commands, *opened.reader, hub.known(), hub.large(), catalog, metrics, engine.latencies()},
        fronts{{clock, options_of(config()), reached[0]}, {clock, options_of(config()), reached[1]}} {
    hub.attach(fronts[0], fronts[1]);
    api::add_client_listener(fronts[0], service);
    api::add_admin_listener(fronts[1], service);
    if (const auto loaded = engine.load(); !loaded) throw std::runtime_error(loaded.error().message);
  }

  ledger::Opened open(std::string image) {
    vfs.seed_sqlite(1);
    if (!image.empty()) disk.put(sim::kDatabase, std::move(image));
    auto made = sim::open_ledger(vfs);
    if (!made) throw std::runtime_error(made.error().message);
    return std::move(*made);
  }

  /// The engine and the tools do what they have to do now.
  void pass() {
    do {
      (void)engine.turn();
    } while (transport.answer(engine));
  }

  std::string expanded(std::string_view text) const {
    std::string out;
    while (true) {
      const std::size_t at = text.find('$');
      out += text.substr(0, at);
      if (at == std::string_view::npos) return out;
      text.remove_prefix(at + 1);
      const char which = text.empty() ? ' ' : text.front();
      const std::size_t index = static_cast<std::size_t>(which) - '0';
      if (which == 'c') out += kClientToken;
      else if (which == 'o') out += kOperatorToken;
      else if (index < ids.size() && index < 10) out += ids[index];
      else { out += '$'; continue; }
      text.remove_prefix(1);
    }
  }

  void learn_id(std::string_view answer) {
    constexpr std::string_view kMark = "\r\nLocation: /v1/runs/run_";
    const std::size_t at = answer.find(kMark);
    if (at == std::string_view::npos) return;
    std::string id(answer.substr(at + kMark.size(), 26));
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(std::move(id));
  }

  std::vector<Answer> serve(Listener listener, std::string_view requests) {
    Front& front = fronts[listener == Listener::client ? 0 : 1];
    front.open();
    std::vector<Answer> answers;
    std::string rest(requests);
    while (true) {
      // Later requests may name what earlier ones have made, so they are written out one at a time.
      const std::string text = expanded(rest);
      std::string_view left = text;
      auto answer = front.serve(left, [this] { pass(); });
      if (!answer) return answers;
      learn_id(answer->bytes);
      pass();
      answers.push_back(std::move(*answer));
      rest = left;
    }
  }

  HandClock clock;
  sim::Disk disk;
  sim::Vfs vfs;
  tools::Catalog catalog;
  api::Hub hub;
  api::MetricsRegistry metrics;
  std::unique_ptr<Random> random;
  ledger::Opened opened;
  CountingLedger ledger;
  Tools transport;
  engine::Engine engine;
  TurningCommands commands;
  api::Service service;
  Front fronts[2];
  std::vector<std::string> ids;
};

Surface::Surface() {
  world_ = std::make_unique<World>("", 1, reached_);
  for (const Seed& seed : kSeeds) {
    const auto answers = world_->serve(seed.listener, request_of(seed));
    if (answers.size() != 1 || !answers.front().bytes.starts_with("HTTP/1.1 20"))
      throw std::logic_error("a seed is refused: " + answers.front().bytes);
  }
  seeded_ = world_->ids;
  sim::Disk& disk = world_->disk;
  world_->pass();
  const auto copied = disk.after_power_cut(1, sim::every(sim::Fate::applied));
  {
    sim::Vfs vfs(*copied);
    if (const auto closed = sim::open_ledger(vfs); !closed) throw std::runtime_error(closed.error().message);
  }
  image_ = copied->content(sim::kDatabase);
  for (Reached& reached : reached_)
    for (auto& [route, statuses] : reached) statuses.clear();
  world_.reset();
}

Surface::~Surface() = default;

/// A ledger in which nothing has moved is as good as a new one.
void Surface::begin() {
  if (world_ && world_->ledger.commits == 0 && world_->clock.at == kBegin) return;
  world_.reset();
  world_ = std::make_unique<World>(image_, 2, reached_);
  world_->pass();
  world_->ids = seeded_;
  world_->ledger.commits = 0;
}

std::vector<Surface::Answer> Surface::serve(Listener listener, std::string_view requests) {
  begin();
  return world_->serve(listener, requests);
}

const Surface::Reached& Surface::reached(Listener listener) const {
  return reached_[listener == Listener::client ? 0 : 1];
}

namespace {

const std::set<std::string_view> kHeaderNames = {"Accept-Ranges", "Allow", "Cache-Control", "Connection", "Content-Length", "Content-Type",
                                                 "Idempotency-Replayed", "Keep-Alive", "Location", "Retry-After", "Transfer-Encoding",
                                                 "WWW-Authenticate"};

/// What is wrong with one answer; empty: nothing.
std::string fault_of(const Surface::Answer& given) {
  const std::string_view answer = given.bytes;
  if (!answer.starts_with("HTTP/1.1 ")) return "an answer without a status line";
  const int status = std::atoi(std::string(answer.substr(9, 3)).c_str());
  if (status < 200 || status > 599 || status == 500) return "status " + std::to_string(status);
  const std::size_t end = answer.find("\r\n\r\n");
  if (end == std::string_view::npos) return "a head without an end";
  std::map<std::string, std::string, std::less<>> headers;
  std::string_view lines = answer.substr(0, end + 2);
  lines.remove_prefix(lines.find("\r\n") + 2);
  while (!lines.empty()) {
    const std::size_t stop = lines.find("\r\n"), colon = lines.find(": ");
    if (colon >= stop) return "a header line without a name";
    const std::string_view value = lines.substr(colon + 2, stop - colon - 2);
    if (!kHeaderNames.contains(lines.substr(0, colon))) return "a header that nobody sets: " + std::string(lines.substr(0, stop));
    if (value.find_first_of("\r\n") != std::string_view::npos) return "a line end in a header";
    if (!headers.emplace(lines.substr(0, colon), value).second) return "a header twice: " + std::string(lines.substr(0, colon));
    lines.remove_prefix(stop + 2);
  }
  const std::string_view body = answer.substr(end + 4);
  if (const auto length = headers.find("Content-Length"); length != headers.end()) {
    if (given.method == "HEAD") return body.empty() ? "" : "a body for HEAD";
    if (length->second != std::to_string(body.size())) return "a length of " + length->second + " for " + std::to_string(body.size()) + " bytes";
  }
  const std::string type = headers["Content-Type"];
  if (status >= 400 && type != "application/problem+json") return "an error that is no problem";
  if (type.ends_with("json") && !body.empty() && !json::parse(body, {.depth = 128, .nodes = 2'000'000})) return "an answer that is no JSON";
  return {};
}

}  // namespace

std::string Surface::broken_promise(std::string_view requests) {
  const bool boss = requests.find("$o") != std::string_view::npos;
  const bool known = boss || requests.find("$c") != std::string_view::npos;
  for (const Listener listener : {Listener::client, Listener::admin}) {
    const std::string where = listener == Listener::client ? "client: " : "admin: ";
    const bool allowed = listener == Listener::client ? known : boss;
    for (const Answer& answer : serve(listener, requests)) {
      if (const std::string fault = fault_of(answer); !fault.empty()) return where + fault;
      if (answer.bytes.find(kSecret) != std::string::npos && requests.find(kSecret) == std::string_view::npos) return where + "a secret";
      const bool open = answer.route == "GET /healthz" || answer.route == "GET /readyz" || answer.route == "GET /errors/{code}";
      if (!allowed && !open && !answer.route.empty()) return where + "a handler without a token that allows it";
    }
    if (!allowed && world_->ledger.commits != 0) return where + "a change without a token that allows it";
  }
  return {};
}

}  // namespace holdfast::testing
