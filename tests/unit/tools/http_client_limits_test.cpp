#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <random>

#include "http_client_fixture.h"
#include "support/slack.h"
#include "tools/http_client_address.h"

using namespace holdfast;
using namespace holdfast::tools;
using namespace holdfast::tools::testing;

namespace {

using holdfast::testing::kSlack;

std::string gzip_of_small() {  // {"a":1}
  static constexpr unsigned char kBytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02,
                                             0x03, 0xab, 0x56, 0x4a, 0x54, 0xb2, 0x32, 0xac, 0x05,
                                             0x00, 0xaf, 0xac, 0x1b, 0x56, 0x07, 0x00, 0x00, 0x00};
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

// One block with fixed codes: an `a`, then matches of length 258 at distance 1. Cut before its checksum,
// which nobody may get to.
std::string gzip_bomb(std::size_t inflated) {
  std::string out("\x1f\x8b\x08\0\0\0\0\0\x02\x03", 10);
  unsigned held = 0;
  int bits = 0;
  const auto put = [&](bool bit) {
    held |= unsigned{bit} << bits;
    if (++bits < 8) return;
    out.push_back(static_cast<char>(held));
    held = 0, bits = 0;
  };
  const auto code = [&](unsigned value, int length) {
    while (length-- > 0) put(value >> length & 1);
  };                                 // highest bit first
  put(true), put(true), put(false);  // last block, fixed codes
  code(0x30 + 'a', 8);
  for (std::size_t n = 1; n < inflated; n += 258) code(0b11000101, 8), code(0, 5);
  return out;
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST_CASE("a compressed answer is read, and a bomb ends at the limit in little memory") {
  const std::string small = gzip_of_small();
  const std::string bomb = gzip_bomb(100 << 20);
  RawServer server([&](Peer& peer, int) {
    while (true) {
      const std::string request = peer.request();
      if (request.empty()) return;
      peer.write(ok(request.find("/bomb") != std::string::npos ? bomb : small, "Content-Encoding: gzip\r\n"));
    }
  });
  Client client;
  CHECK(client.run(client.get(server.url())).body == "{\"a\":1}");
  const long before = peak_kib();
  const HttpOutcome outcome = client.run(client.get(server.url("/bomb")));
  CHECK(outcome.failure == Failure::too_large);
  CHECK(outcome.phase == Phase::rx_part_body);
  CHECK(outcome.body.empty());
  CHECK(peak_kib() - before < 32 * 1024 * kSlack);
}

TEST_CASE("a body of exactly the limit is read, one byte more is not") {
  RawServer server([&](Peer& peer, int) {
    while (true) {
      const std::string request = peer.request();
      if (request.empty()) return;
      const std::string body(request.find("/more") != std::string::npos ? 1001 : 1000, 'a');
      peer.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                 (body.size() == 1001 ? std::string("3e9") : std::string("3e8")) + "\r\n" + body +
                 "\r\n0\r\n\r\n");
    }
  });
  Client client;
  auto request = client.get(server.url());
  request.max_body_bytes = 1000;
  CHECK(client.run(request).body.size() == 1000);
  request.url = server.url("/more");
  CHECK(client.run(request).failure == Failure::too_large);
}

TEST_CASE("the head is bounded") {
  RawServer server([&](Peer& peer, int) {
    peer.request();
    peer.write("HTTP/1.1 200 OK\r\n");
    while (peer.write("X-Fill: " + std::string(1000, 'a') + "\r\n")) {
    }
  });
  Client client;
  const HttpOutcome outcome = client.run(client.post(server.url()));
  CHECK(outcome.failure == Failure::too_large);
  CHECK(outcome.status == 200);
  CHECK(outcome.phase == Phase::rx_part_head);
}

TEST_CASE("a name that points inward is refused, an address that is written out is meant") {
  RawServer server([](Peer& peer, int) {
    while (!peer.request().empty()) peer.write(ok("{}"));
  });
  Client client;
  for (const char* name : {"inside.test", "metadata.test"}) {
    const HttpOutcome outcome = client.run(client.post(named_url(name, server.port)));
    INFO(name);
    CHECK(outcome.failure == Failure::address_refused);
    CHECK(outcome.phase == Phase::dns);
    CHECK(outcome.bytes_sent == 0);
  }
  CHECK(server.accepted == 0);
  HttpRequest allowed = client.post(named_url("inside.test", server.port));
  allowed.allow_private = true;
  CHECK(client.run(allowed).failure == Failure::none);
  HttpRequest metadata = client.post(named_url("metadata.test", server.port));
  metadata.allow_private = true;
  CHECK(client.run(metadata).failure == Failure::address_refused);
  CHECK(client.run(metadata).bytes_sent == 0);
  // The allowed call has left a connection behind: it is no way around the rule.
  CHECK(client.run(client.post(named_url("inside.test", server.port))).failure == Failure::address_refused);
  CHECK(client.run(client.post(named_url("localhost", server.port))).failure == Failure::none);
  CHECK(client.run(client.post(server.url())).failure == Failure::none);
}

TEST_CASE("which addresses are private") {
  for (const char* address :
       {"127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
        "100.100.100.200", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00:ec2::254",
        "ff02::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "nonsense"}) {
    INFO(address);
    CHECK(is_private_address(std::string_view(address)));
  }
  for (const char* address : {"1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "192.167.1.1",
                              "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"}) {
    INFO(address);
    CHECK_FALSE(is_private_address(std::string_view(address)));
  }
}

TEST_CASE("which addresses are refused even where private ones are allowed") {
  for (const char* address : {"169.254.169.254", "169.254.0.1", "100.100.100.200", "192.0.0.192", "fe80::1", "febf::1", "fd00:ec2::254",
                              "::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "nonsense"}) {
    INFO(address);
    CHECK(is_forbidden_address(std::string_view(address)));
  }
  for (const char* address : {"127.0.0.1", "10.0.0.1", "169.253.1.1", "::1", "fd00::1", "::ffff:10.0.0.1", "1.1.1.1"}) {
    INFO(address);
    CHECK_FALSE(is_forbidden_address(std::string_view(address)));
  }
}

TEST_CASE("a proxy from the environment is not used") {
  RawServer proxy([](Peer& peer, int) { peer.request(), peer.write(ok("\"proxy\"")); });
  RawServer server([](Peer& peer, int) { peer.request(), peer.write(ok("\"server\"")); });
  for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"})
    setenv(name, proxy.url("").c_str(), 1);
  {
    Client client;
    CHECK(client.run(client.post(server.url())).body == "\"server\"");
  }
  for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) unsetenv(name);
  CHECK(proxy.accepted == 0);
}

namespace {

std::string redirect(int status, const std::string& to) {
  return "HTTP/1.1 " + std::to_string(status) + " Go\r\nLocation: " + to + "\r\nContent-Length: 0\r\n\r\n";
}

}  // namespace

TEST_CASE("redirects: reads go on, credentials stay, writes do not move") {
  std::mutex mutex;
  std::vector<std::string> here, there;
  RawServer other([&](Peer& peer, int) {
    for (std::string r; !(r = peer.request()).empty();) {
      {
        const std::lock_guard lock(mutex);
        there.push_back(r);
      }
      peer.write(ok("\"other\""));
    }
  });
  RawServer server([&](Peer& peer, int) {
    for (std::string r; !(r = peer.request()).empty();) {
      {
        const std::lock_guard lock(mutex);
        here.push_back(r);
      }
      const auto is = [&](const char* path) {
        return r.find(std::string(" ") + path + " ") != std::string::npos;
      };
      if (is("/near"))
        peer.write(redirect(302, "/target"));
      else if (is("/far"))
        peer.write(redirect(307, other.url("/t")));
      else if (is("/loop"))
        peer.write(redirect(302, "/loop"));
      else if (is("/see"))
        peer.write(redirect(303, "target"));
      else if (is("/file"))
        peer.write(redirect(302, "file:///etc/passwd"));
      else if (is("/metadata"))
        peer.write(redirect(302, "http://169.254.169.254/latest"));
      else if (is("/gone"))
        peer.write(redirect(302, "http://127.0.0.1:1/"));
      else
        peer.write(ok("\"target\""));
    }
  });
  Client client;
  const auto read = [&](const std::string& path, const char* method = "GET") {
    HttpRequest request = method[0] == 'G' ? client.get(server.url(path)) : client.post(server.url(path));
    request.follow_redirects = true;
    request.headers = {
        {"Authorization", "Bearer s3cret"}, {"X-Api-Key", "s3cret"}, {"Accept", "application/json"}};
    return client.run(request);
  };
  CHECK(read("/near").body == "\"target\"");
  CHECK(here.back().find("s3cret") != std::string::npos);
  CHECK(read("/far").body == "\"other\"");
  REQUIRE(there.size() == 1);
  CHECK(there[0].find("s3cret") == std::string::npos);
  CHECK(there[0].find("Accept: application/json") != std::string::npos);

  here.clear();
  const HttpOutcome loop = read("/loop");
  CHECK(loop.failure == Failure::redirect_limit);
  CHECK(loop.status == 302);
  CHECK(here.size() == 6);

  CHECK(read("/see", "POST").body == "\"target\"");
  CHECK(here.back().starts_with("GET /target "));
  CHECK(read("/near", "POST").body == "\"target\"");
  CHECK(here.back().starts_with("POST /target "));
  CHECK(read("/far", "POST").status == 307);
  CHECK(there.size() == 1);
  CHECK(read("/file").status == 302);

  // The first server has seen the request: nothing that comes later makes it "never sent".
  for (const char* path : {"/gone", "/metadata"}) {
    const HttpOutcome outcome = read(path);
    INFO(path << ": " << outcome.detail);
    CHECK(outcome.failure == Failure::connection_lost);
    CHECK(outcome.phase == Phase::tx_all);
    CHECK(outcome.bytes_sent > 0);
  }

  here.clear();
  for (const char* path : {"/near", "/far", "/see"})
    CHECK(client.run(client.post(server.url(path))).status >= 300);
  CHECK(here.size() == 3);
  CHECK(there.size() == 1);
}

namespace {

/// By how much the latest of a thousand timeouts came too late; -1 when one came early or was something else.
std::int64_t latest_of_a_thousand_ms(const RawServer& server) {
  constexpr int kCalls = 1000;
  Client client;
  std::atomic<int> left{kCalls}, wrong{0};
  std::atomic<std::int64_t> latest_ms{0};
  std::promise<void> all;
  for (int i = 0; i < kCalls; ++i) {
    const Instant deadline = client.clock.now() + Duration{1500 + i % 300};
    HttpRequest request = client.post(server.url());
    request.deadline = deadline;
    HttpCallbacks callbacks;
    callbacks.done = [&, deadline](HttpOutcome outcome) {
      const std::int64_t late = (client.clock.now() - deadline).count();
      if (outcome.failure != Failure::timeout || late < 0) ++wrong;
      latest_ms = std::max(latest_ms.load(), late);
      if (--left == 0) all.set_value();
    };
    client.http->start(std::move(request), std::move(callbacks));
  }
  all.get_future().wait();
  return wrong == 0 ? latest_ms.load() : -1;
}

}  // namespace

TEST_CASE("a thousand slow calls at once keep their deadlines") {
  RawServer server([](Peer& peer, int) { peer.request(), peer.client_gone(20'000); });
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  setrlimit(RLIMIT_NOFILE, &files);
  // A busy machine may hold one round up; it does not hold up each of five.
  std::int64_t best_ms = 1'000'000;
  for (int round = 0; round < 5 && best_ms > 50 * kSlack; ++round) {
    const std::int64_t latest_ms = latest_of_a_thousand_ms(server);
    REQUIRE(latest_ms >= 0);
    best_ms = std::min(best_ms, latest_ms);
  }
  CHECK(best_ms <= 50 * kSlack);
}

TEST_CASE("requests per second on loopback", "[.bench]") {
  const bool fresh = GENERATE(false, true);
  RawServer server(
      [&](Peer& peer, int) {
        while (!peer.request().empty() && peer.write(ok("{\"ok\":true}")) && !fresh) {
        }
      },
      fresh);
  Client client;
  constexpr int kTotal = 20'000, kInFlight = 32;
  std::atomic<int> started{0}, finished{0}, failed{0};
  std::promise<void> all;
  std::function<void()> next = [&] {
    if (started++ >= kTotal) return;
    HttpRequest request = client.post(server.url(), "{\"a\":1}", Duration{10'000});
    request.fresh_connection = fresh;
    request.headers = {{"Content-Type", "application/json"},
                       {"Accept", "application/json"},
                       {"Idempotency-Key", "hf1_abcdefgh"}};
    HttpCallbacks callbacks;
    callbacks.done = [&](HttpOutcome outcome) {
      if (outcome.failure != Failure::none) ++failed;
      if (++finished == kTotal) return all.set_value();
      next();
    };
    client.http->start(std::move(request), std::move(callbacks));
  };
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kInFlight; ++i) next();
  all.get_future().wait();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  WARN((fresh ? "fresh: " : "kept: ") << int(kTotal / seconds) << " requests/s, failed " << failed);
  CHECK(failed == 0);
}
