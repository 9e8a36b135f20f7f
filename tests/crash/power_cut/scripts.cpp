#include "power_cut/scripts.h"

#include "ledger/sqlite/migrate.h"

namespace holdfast::sweep {

namespace {

using Action = std::function<void(World&)>;

/// A plan of these tools; its steps are s0, s1, …, each behind the one before it.
std::string plan(const std::string& key, const std::vector<std::string>& tools) {
  std::string steps;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const std::string id = "s" + std::to_string(i);
    steps += (i ? "," : "") + (R"({"id":")" + id) + R"(","server":"api","tool":")" + tools[i] + R"(","args":{"m":")" + key + "/" + id + R"("}})";
  }
  return R"({"name":")" + key + R"(","steps":[)" + steps + "]}";
}

Action submit(std::string key, std::vector<std::string> tools) {
  return [=](World& w) { w.submit(key, plan(key, tools)); };
}
/// A read with the same arguments as all others of this kind: what one was answered may stand in for the next.
Action ask_again(std::string key) {
  return [=](World& w) {
    w.submit(key, R"({"name":")" + key + R"(","steps":[{"id":"s0","server":"api","tool":"cached","args":{"m":")" + kShared + R"("}}]})");
  };
}
Action answer(std::string marker, Evidence evidence = good()) {
  return [=](World& w) { w.answer(marker, evidence); };
}
Action sleep(std::int64_t ms) {
  return [=](World& w) { w.sleep(Duration{ms}); };
}
Action resolve(std::string run, std::size_t step, run::Resolution verdict) {
  return [=](World& w) { w.resolve(run, step, verdict); };
}

std::vector<Action> many_runs(int count) {
  std::vector<Action> actions;
  for (int i = 0; i < count; ++i) {
    const std::string key = "r" + std::to_string(i);
    actions.push_back(submit(key, {"plain", "keyed"}));
    actions.push_back(answer(key + "/s0"));
    actions.push_back(answer(key + "/s1"));
  }
  return actions;
}

}  // namespace

const std::vector<Script>& scripts() {
  using enum run::Resolution;
  static const std::vector<Script> all{
      {"a database is made and migrated", {submit("a", {"plain"}), answer("a/s0")}, true},
      {"a plan from submission to its end",
       {submit("a", {"read", "plain", "keyed"}), answer("a/s0"), answer("a/s1"), answer("a/s2", lost()), sleep(1'500), answer("a/s2")}},
      {"unknown writes and all three verdicts",
       {submit("a", {"plain", "read"}), submit("b", {"plain", "read"}), submit("c", {"plain", "read"}), answer("a/s0", lost()), answer("b/s0", lost()),
        answer("c/s0", status(500)), resolve("a", 0, not_landed), resolve("b", 0, landed), resolve("c", 0, abandon), answer("a/s0"), answer("a/s1"),
        answer("b/s1")}},
      {"cancels, with a write on the wire and before it",
       {submit("a", {"plain", "plain"}), submit("b", {"read", "plain"}), [](World& w) { w.cancel("a"); }, [](World& w) { w.cancel("b"); },
        resolve("a", 0, landed)}},
      {"an open run",
       {[](World& w) { w.submit("o", R"({"name":"o","mode":"open"})"); }, [](World& w) { w.step("o", "s0"); }, answer("o/s0"),
        [](World& w) { w.step("o", "s1"); }, answer("o/s1"), [](World& w) { w.finish("o"); }}},
      {"breakers and rate gates",
       {submit("a", {"read"}), answer("a/s0", status(500)), sleep(1'500), answer("a/s0", status(500)), sleep(2'500), answer("a/s0"),
        submit("b", {"read"}), answer("b/s0", status(429, "1")), submit("c", {"keyed"}), sleep(2'500), answer("b/s0"), answer("c/s0"),
        [](World& w) { w.force(true); }, [](World& w) { w.force(false); }}},
      {"a check, a late answer, and a process that dies",
       {submit("a", {"checked"}), answer("a/s0", lost()), answer("a/s0", good(R"({"total":0})")), sleep(5'000), answer("a/s0", good(R"({"total":1})")),
        submit("b", {"plain", "read"}), answer("b/s0", lost()), [](World& w) { w.late("b/s0"); }, submit("c", {"keyed", "plain"}),
        [](World& w) { w.kill(); }, sleep(2'000), answer("c/s0"), answer("c/s1")}},
      {"answers that are kept, a fallback that uses one, and service times",
       {ask_again("a"), answer(kShared, good(R"({"kept":1})")), sleep(11'000), ask_again("b"), answer(kShared, status(404)), ask_again("c"),
        answer(kShared, good(R"({"kept":2})"))}},
      {"old runs are deleted",
       {submit("a", {"read"}), answer("a/s0"), submit("b", {"plain", "read"}), answer("b/s0"), answer("b/s1"), submit("c", {"plain"}),
        answer("c/s0", lost()), sleep(70'000), submit("z", {"read"}), answer("z/s0"), sleep(2'000)},
       false, false, 1024, 4096, Duration{60'000}},
      {"checkpoints", many_runs(6), false, false, 8, 40},
      {"a restored backup is adopted", {sleep(500), submit("z", {"read"}), answer("z/s0")}, false, true},
  };
  return all;
}

std::vector<Script> migrations() {
  std::vector<Script> all;
  for (std::uint32_t version = 1; version < ledger::sqlite::newest_version(); ++version) {
    all.push_back({"a ledger of schema " + std::to_string(version), {sleep(500), submit("z", {"read"}), answer("z/s0")}});
    all.back().from_version = version;
  }
  return all;
}

}  // namespace holdfast::sweep
