#pragma once
#include <atomic>
#include <stdexcept>

#include "http/server.h"
#include "raw_client.h"

namespace holdfast::http {

/// A server on a free port with a route for everything that the tests ask.
struct TestServer {
  explicit TestServer(Options options = {}) {
    options.listen = "127.0.0.1:0";
    options.name = "test";
    server = make_server(clock, options);
    const auto alive = [](Request&) -> Outcome { return Response{.body = "\"alive\""}; };
    server->route("GET", "/healthz", Access::open, alive, alive);
    server->route("POST", "/echo", Access::open, [this](Request& r) -> Outcome {
      ++echoed;
      return Response{.body = r.body};
    });
    server->route("GET", "/header", Access::open, [](Request& r) -> Outcome {
      return Response{.body = r.header("idempotency-key").value_or("-")};
    });
    server->route("GET", "/v1/runs/{id}/steps/{step}", Access::open, [](Request& r) -> Outcome {
      return Response{.body = r.parameters.at("id") + "|" + r.parameters.at("step") + "|" +
                              r.query_value("q").value_or("-")};
    });
    server->route("GET", "/throw", Access::open,
                  [](Request&) -> Outcome { throw std::runtime_error("a secret"); });
    server->route("POST", "/client", Access::client,
                  [](Request& r) -> Outcome { return Response{.body = r.identity.name}; });
    server->route("POST", "/operate", Access::operate,
                  [](Request& r) -> Outcome { return Response{.body = r.identity.name}; });
    server->route("GET", "/park", Access::open, [this](Request& r) -> Outcome {
      if (r.resumed) return Response{.body = r.waited_out ? "waited out" : "woken"};
      r.watch("topic");
      ++parked;
      const auto ms = r.query_value("ms");
      return Park{clock.now() + Duration(ms ? std::stoi(*ms) : 60'000)};
    });
  }

  void listen() {
    auto bound = server->listen();
    REQUIRE(bound.has_value());
    address = *bound;
  }

  SystemClock clock;
  std::unique_ptr<Server> server;
  std::string address;
  std::atomic<int> echoed{0};
  std::atomic<int> parked{0};
};

/// Polls for a state that another thread reaches; false after five seconds.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace holdfast::http
