#include "api/status.h"

namespace holdfast::api {
namespace {

struct CodeRule {
  std::string_view code;
  int status;
  int retry_after_s;
};

constexpr std::array kCodes = {
    CodeRule{"run_not_found", 404, 0},   CodeRule{"step_not_found", 404, 0},
    CodeRule{"write_not_found", 404, 0}, CodeRule{"server_not_found", 404, 0},
    CodeRule{"tool_not_found", 404, 0},  CodeRule{"already_resolved", 409, 0},
    CodeRule{"not_unknown", 409, 0},     CodeRule{"run_settled", 409, 0},
    CodeRule{"not_open", 409, 0},        CodeRule{"exists", 409, 0},
    CodeRule{"step_in_flight", 409, 0},  CodeRule{"unknown_write", 409, 0},
    CodeRule{"key_reused", 422, 0},      CodeRule{"step_reused", 422, 0},
    CodeRule{"overloaded", 503, 1},      CodeRule{"shutting_down", 503, 2},
    CodeRule{"not_ready", 503, 1},       CodeRule{"commit_timeout", 503, 1},
    CodeRule{"storage_error", 503, 2},   CodeRule{"storage_broken", 503, 10},
    CodeRule{"storage_full", 507, 5},    CodeRule{"internal", 500, 0},
};

const CodeRule* rule_of(std::string_view code) {
  const auto found = std::ranges::find(kCodes, code, &CodeRule::code);
  return found == kCodes.end() ? nullptr : &*found;
}

}  // namespace

int status_of(std::string_view code) {
  const CodeRule* rule = rule_of(code);
  return rule ? rule->status : 400;
}

http::Response failure(const Error& error) {
  const CodeRule* rule = rule_of(error.code);
  return http::problem(rule ? rule->status : 400, error, rule ? rule->retry_after_s : 0);
}

}  // namespace holdfast::api
