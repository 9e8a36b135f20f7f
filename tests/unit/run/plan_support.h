#pragma once
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "holdfast/run/plan.h"

namespace holdfast::run {

inline constexpr Instant kNow{1'796'000'000'000};  // 2026-11-30T00:53:20Z

/// A server `api` with a read `look` (5 attempts), a write `w`, a write `charge` with a path argument, and
/// two with target templates.
inline const std::map<std::string, ToolPolicy, std::less<>>& test_tools() {
  static const auto tools = [] {
    std::map<std::string, ToolPolicy, std::less<>> out;
    for (const char* name : {"look", "w", "charge", "fixed", "templated"})
      out[name] = ToolPolicy{.server = "api", .tool = name};
    out["look"].effect = Effect::read;
    out["look"].max_attempts = 5;
    out["charge"].path_arguments = {"customer"};
    out["fixed"].target = "the $${one}";
    out["templated"].target = "${args/project}";
    return out;
  }();
  return tools;
}

inline PlanContext context() {
  PlanContext out;
  out.now = kNow;
  out.server_exists = [](std::string_view server) { return server == "api"; };
  out.find_tool = [](std::string_view server, std::string_view tool) -> const ToolPolicy* {
    const auto found = test_tools().find(tool);
    return server != "api" || found == test_tools().end() ? nullptr : &found->second;
  };
  return out;
}

inline Run planned(const std::string& text) {
  const auto submission = json::parse(text);
  REQUIRE(submission);
  auto run = plan(*submission, context());
  if (!run) FAIL("refused: " << run.error().message << " at " << run.error().pointer);
  return std::move(*run);
}

inline Error refused(const std::string& text) {
  const auto submission = json::parse(text);
  REQUIRE(submission);
  const auto run = plan(*submission, context());
  REQUIRE_FALSE(run);
  return run.error();
}

}  // namespace holdfast::run
