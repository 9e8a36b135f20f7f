#include <catch2/catch.hpp>

#include "http_client_fixture.h"
#include "tools/http_client_address.h"

using namespace holdfast;
using namespace holdfast::tools;
using namespace holdfast::tools::testing;

TEST_CASE("a complete answer has status, headers, body and exact byte counts") {
  RawServer server([](Peer& peer, int) {
    const std::string request = peer.request();
    peer.write(ok("{\"n\":" + std::to_string(request.size()) + "}", "X-Two: a\r\nx-two:  b \r\n"));
    peer.client_gone();
  });
  Client client;
  const HttpOutcome outcome = client.run(client.post(server.url()));
  CHECK(outcome.failure == Failure::none);
  CHECK(outcome.phase == Phase::rx_all);
  CHECK(outcome.status == 200);
  CHECK(outcome.headers.all("x-two") == "a, b");
  CHECK(outcome.headers.get("content-type") == "application/json");
  CHECK(outcome.body == "{\"n\":" + std::to_string(outcome.bytes_sent) + "}");
  CHECK(outcome.bytes_received > outcome.body.size());
  CHECK(outcome.detail.empty());
}

TEST_CASE("an interim answer is passed over") {
  RawServer server([](Peer& peer, int) {
    peer.request();
    peer.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok("{}"));
    peer.client_gone();
  });
  Client client;
  const HttpOutcome outcome = client.run(client.post(server.url()));
  CHECK(outcome.status == 200);
  CHECK(outcome.headers.get("link").empty());
}

TEST_CASE("every way an answer ends is told by what was seen") {
  struct Row {
    const char* name;
    std::string answer;
    bool reset;
    Failure failure;
    Phase phase;
    int status;
  };
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::vector<Row> rows{
      {"end without a byte", "", false, Failure::connection_lost, Phase::tx_all, 0},
      {"reset without a byte", "", true, Failure::connection_lost, Phase::tx_all, 0},
      {"cut in the status line", "HTTP/1.1 20", false, Failure::connection_lost, Phase::rx_part_head, 0},
      {"reset in the status line", "HTTP/1.1 20", true, Failure::connection_lost, Phase::rx_part_head, 0},
      {"cut in the head", head + "Content-Ty", false, Failure::connection_lost, Phase::rx_part_head, 0},
      {"reset in the head", head + "Content-Ty", true, Failure::connection_lost, Phase::rx_part_head, 0},
      {"only an interim answer", "HTTP/1.1 100 Continue\r\n\r\n", false, Failure::connection_lost,
       Phase::rx_part_head, 0},
      {"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", false, Failure::bad_framing, Phase::rx_part_head, 0},
      {"no status", "HTTP/1.1 xx OK\r\n\r\n", false, Failure::bad_framing, Phase::rx_part_head, 0},
      {"switched protocols", "HTTP/1.1 101 Sure\r\n\r\n", false, Failure::bad_framing, Phase::rx_part_head,
       101},
      {"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", false, Failure::bad_framing,
       Phase::rx_head, 200},
      {"two lengths in one", head + "Content-Length: 2, 3\r\n\r\n{}x", false, Failure::bad_framing,
       Phase::rx_head, 200},
      {"a length in words", head + "Content-Length: two\r\n\r\n{}", false, Failure::bad_framing,
       Phase::rx_part_head, 0},
      {"surplus bytes", head + "Content-Length: 2\r\n\r\n{}x", false, Failure::bad_framing,
       Phase::rx_part_body, 200},
      {"surplus after chunks", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nXX", false,
       Failure::bad_framing, Phase::rx_part_body, 200},
      {"a chunk size in words", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", false,
       Failure::bad_framing, Phase::rx_head, 200},
      {"cut body", head + "Content-Length: 5\r\n\r\n{}", false, Failure::body_cut, Phase::rx_part_body, 200},
      {"reset body", head + "Content-Length: 5\r\n\r\n{}", true, Failure::body_cut, Phase::rx_part_body, 200},
      {"cut before the body", head + "Content-Length: 5\r\n\r\n", false, Failure::body_cut, Phase::rx_head,
       200},
      {"last chunk missing", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", false, Failure::body_cut,
       Phase::rx_part_body, 200},
      {"cut error body", "HTTP/1.1 409 No\r\nContent-Length: 5\r\n\r\n{}", false, Failure::body_cut,
       Phase::rx_part_body, 409},
      {"bad gzip", head + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", false,
       Failure::body_unreadable, Phase::rx_head, 200},
      {"too long by its own word", head + "Content-Length: 9223372036854775807\r\n\r\n{", false,
       Failure::too_large, Phase::rx_head, 200},
      {"too long beyond counting", head + "Content-Length: 99999999999999999999999\r\n\r\n{", false,
       Failure::too_large, Phase::rx_head, 200},
      {"same length twice", head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", false, Failure::none,
       Phase::rx_all, 200},
      {"ended by the close", head + "\r\n{}", false, Failure::none, Phase::rx_all, 200},
      {"no content", "HTTP/1.1 204 None\r\n\r\n", false, Failure::none, Phase::rx_all, 204},
  };
  for (const Row& row : rows)
    for (const bool fresh : {true, false}) {
      RawServer server([&](Peer& peer, int) {
        peer.request();
        peer.write(row.answer);
        if (row.reset) peer.pause(60), peer.reset();
      });
      Client client;
      HttpRequest request = client.post(server.url());
      request.fresh_connection = fresh;
      const HttpOutcome outcome = client.run(request);
      INFO(row.name << (fresh ? ", fresh" : "") << ": " << outcome.detail);
      CHECK(outcome.failure == row.failure);
      CHECK(word(outcome.phase) == word(row.phase));
      CHECK(outcome.status == row.status);
      CHECK(outcome.bytes_sent > 0);
      CHECK((outcome.bytes_received > 0) == !row.answer.empty());
      CHECK(server.accepted == 1);
    }
}

TEST_CASE("never sent is told apart from maybe sent") {
  Client client;
  SECTION("connection refused") {
    std::string url;
    {
      url = RawServer([](Peer&, int) {}).url();
    }
    const HttpOutcome outcome = client.run(client.post(url));
    CHECK(outcome.failure == Failure::connect);
    CHECK(outcome.phase == Phase::tcp);
    CHECK(outcome.bytes_sent == 0);
  }
  SECTION("name lookup") {
    const auto missing = client.run(client.post(named_url("missing.test", 9)));
    CHECK(missing.failure == Failure::dns_not_found);
    CHECK(missing.phase == Phase::dns);
    const auto later = client.run(client.post(named_url("later.test", 9)));
    CHECK(later.failure == Failure::dns_temporary);
    CHECK(later.phase == Phase::dns);
  }
  SECTION("a lookup that stalls ends at the deadline and holds nobody up") {
    RawServer server([](Peer& peer, int) {
      while (!peer.request().empty()) peer.write(ok("{}"));
    });
    const Instant start = client.clock.now();
    auto stalled = client.begin(client.post(named_url("stalled.test", 9), "{}", Duration{200}));
    CHECK(client.run(client.post(server.url())).failure == Failure::none);
    CHECK((client.clock.now() - start).count() < 190);
    const HttpOutcome outcome = stalled.get();
    CHECK(outcome.failure == Failure::timeout);
    CHECK(outcome.phase == Phase::dns);
    CHECK_THAT(outcome.detail,
               Catch::Matches("the name was not resolved within (19[0-9]|200) ms; nothing sent"));
    const Instant after = client.clock.now();
    CHECK((after - start).count() < 260);
    CHECK(client.run(client.post(server.url())).failure == Failure::none);
    CHECK((client.clock.now() - after).count() < 200);
  }
  SECTION("a TLS handshake that is never answered") {
    RawServer server([](Peer& peer, int) { peer.client_gone(); });
    auto request = client.post("https" + server.url().substr(4), "{}", Duration{150});
    const HttpOutcome outcome = client.run(request);
    CHECK(outcome.failure == Failure::timeout);
    CHECK(outcome.phase == Phase::tls);
    CHECK(outcome.bytes_sent == 0);
  }
  SECTION("a TLS handshake that is cut, or answered in clear") {
    RawServer cut([](Peer& peer, int) { peer.pause(30), peer.reset(); });
    const HttpOutcome reset = client.run(client.post("https" + cut.url().substr(4)));
    CHECK(reset.failure == Failure::tls_handshake);
    CHECK(reset.phase == Phase::tls);
    RawServer clear([](Peer& peer, int) { peer.write("HTTP/1.1 400 Bad\r\n\r\n"), peer.client_gone(); });
    CHECK(client.run(client.post("https" + clear.url().substr(4))).failure == Failure::tls_certificate);
  }
  SECTION("no time left") {
    auto request = client.post("http://127.0.0.1:9/");
    request.deadline = client.clock.now();
    const HttpOutcome outcome = client.run(request);
    CHECK(outcome.failure == Failure::timeout);
    CHECK(outcome.phase == Phase::local);
  }
  SECTION("a header that would start another") {
    for (const char* value : {"a\r\nX-Extra: 1", "a\nb"}) {
      auto request = client.post("http://127.0.0.1:9/");
      request.headers.emplace_back("X-Key", value);
      const HttpOutcome outcome = client.run(request);
      CHECK(outcome.failure == Failure::address_refused);
      CHECK(outcome.phase == Phase::local);
    }
  }
  SECTION("another scheme") {
    CHECK(client.run(client.get("file:///etc/hostname")).failure == Failure::address_refused);
  }
}

TEST_CASE("a request that is not taken whole is tx_part") {
  const std::string large(32 << 20, 'a');
  SECTION("the server stops reading") {
    RawServer server([](Peer& peer, int) {
      while (!peer.pause(50)) {
      }
    });
    Client client;
    HttpRequest request = client.post(server.url(), large);
    request.deadline = client.clock.now() + Duration{300};
    const HttpOutcome outcome = client.run(std::move(request));
    CHECK(outcome.failure == Failure::timeout);
    CHECK(outcome.phase == Phase::tx_part);
    CHECK(outcome.bytes_sent > 0);
    CHECK(outcome.bytes_sent < large.size());
  }
  SECTION("the server resets") {
    RawServer server([](Peer& peer, int) { peer.pause(50), peer.reset(); });
    Client client;
    const HttpOutcome outcome = client.run(client.post(server.url(), large));
    CHECK(outcome.failure == Failure::send_cut);
    CHECK(outcome.phase == Phase::tx_part);
    CHECK(outcome.bytes_sent < large.size());
  }
}

TEST_CASE("a reset on a reused connection is never sent again behind our back") {
  for (const char* method : {"GET", "POST"}) {
    std::atomic<int> requests{0};
    RawServer server([&](Peer& peer, int) {
      if (!peer.request().empty()) ++requests, peer.write(ok("{}"));
      if (!peer.request().empty())
        ++requests, peer.reset();
      else
        return;
    });
    Client client;
    const auto request = [&] {
      return method[0] == 'G' ? client.get(server.url()) : client.post(server.url());
    };
    CHECK(client.run(request()).failure == Failure::none);
    const HttpOutcome outcome = client.run(request());
    INFO(method << ": " << outcome.detail);
    CHECK(outcome.failure == Failure::connection_lost);
    CHECK(outcome.phase == Phase::tx_all);
    CHECK(outcome.reused_connection);
    CHECK(requests == 2);
    CHECK(server.accepted == 1);
  }
}

TEST_CASE("an idle connection that the server has closed costs nothing") {
  std::atomic<int> closed{0};
  RawServer server([&](Peer& peer, int) { peer.request(), peer.write(ok("{}")), peer.shut(), ++closed; });
  Client client;
  for (int i = 1; i <= 20; ++i) {
    CHECK(client.run(client.post(server.url())).failure == Failure::none);
    while (closed < i) std::this_thread::yield();
  }
}

TEST_CASE("plain writes use a connection of their own, others share") {
  RawServer server([&](Peer& peer, int) {
    while (!peer.request().empty()) peer.write(ok("{}"));
  });
  Client client;
  for (int i = 0; i < 5; ++i) CHECK(client.run(client.post(server.url())).failure == Failure::none);
  CHECK(server.accepted == 1);
  for (int i = 0; i < 5; ++i) {
    HttpRequest request = client.post(server.url());
    request.fresh_connection = true;
    const HttpOutcome outcome = client.run(request);
    CHECK(outcome.failure == Failure::none);
    CHECK_FALSE(outcome.reused_connection);
  }
  CHECK(server.accepted == 6);
  CHECK(client.run(client.post(server.url())).reused_connection);
}

TEST_CASE("activity is not a deadline") {
  struct Row {
    const char* name;
    std::string before;
    Phase phase;
  };
  for (const Row& row :
       {Row{"head", "HTTP/1.1 200 OK\r\nX-Long: ", Phase::rx_part_head},
        Row{"body", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", Phase::rx_part_body}}) {
    RawServer server([&](Peer& peer, int) {
      peer.request();
      peer.write(row.before);
      while (!peer.pause(20) && peer.write("a")) {
      }
    });
    Client client;
    const Instant start = client.clock.now();
    const HttpOutcome outcome = client.run(client.post(server.url(), "{}", Duration{300}));
    const auto took = (client.clock.now() - start).count();
    INFO(row.name << " took " << took);
    CHECK(outcome.failure == Failure::timeout);
    CHECK(outcome.phase == row.phase);
    CHECK(took >= 300);
    CHECK(took < 350);
  }
}

TEST_CASE("a timeout names the limit and both numbers") {
  RawServer server([&](Peer& peer, int) { peer.request(), peer.client_gone(); });
  Client client;
  const HttpOutcome outcome = client.run(client.post(server.url(), "{}", Duration{100}));
  CHECK_THAT(outcome.detail, Catch::Matches("no answer within (9[0-9]|100) ms; " +
                                            std::to_string(outcome.bytes_sent) + " bytes sent, 0 received"));
}

TEST_CASE("cancel ends an exchange at once and closes its connection") {
  std::promise<void> got;
  std::promise<bool> gone;
  RawServer server(
      [&](Peer& peer, int) { peer.request(), got.set_value(), gone.set_value(peer.client_gone()); });
  Client client;
  RequestId id = 0;
  auto outcome = client.begin(client.post(server.url()), &id);
  got.get_future().wait();
  client.http->cancel(id);
  const HttpOutcome seen = outcome.get();
  CHECK(seen.failure == Failure::cancelled);
  CHECK(seen.phase == Phase::tx_all);
  CHECK(gone.get_future().get());
  client.http->cancel(id);
  client.http->cancel(id + 100);
}

namespace {

/// What was heard after a timeout of 100 ms had been told.
HttpOutcome heard_late(const RawServer& server) {
  Client client;
  HttpRequest request = client.post(server.url(), "{}", Duration{100});
  request.linger = Duration{3000};
  std::promise<HttpOutcome> late;
  HttpCallbacks callbacks;
  callbacks.late = [&](HttpOutcome outcome) { late.set_value(std::move(outcome)); };
  auto done = client.begin(request, nullptr, callbacks);
  CHECK(done.get().failure == Failure::timeout);
  return late.get_future().get();
}

}  // namespace

TEST_CASE("with linger a late answer is heard after the timeout was told") {
  RawServer server([&](Peer& peer, int) {
    peer.request(), peer.pause(250), peer.write(ok("{\"late\":1}")), peer.client_gone();
  });
  const HttpOutcome outcome = heard_late(server);
  CHECK(outcome.failure == Failure::none);
  CHECK(outcome.body == "{\"late\":1}");
}

TEST_CASE("with linger a late answer that breaks off is heard as far as it came") {
  RawServer server([&](Peer& peer, int) {
    peer.request(), peer.pause(250), peer.write("HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf");
  });
  const HttpOutcome outcome = heard_late(server);
  CHECK(outcome.failure == Failure::body_cut);
  CHECK(outcome.status == 500);
  CHECK(outcome.body == "half");
}

TEST_CASE("what was not wholly sent by the deadline does not go on leaving, linger or not") {
  std::promise<bool> gone;
  RawServer server([&](Peer& peer, int) { gone.set_value(peer.client_gone(20'000)); });
  Client client;
  HttpRequest request = client.post(server.url(), std::string(32 << 20, 'a'));
  request.linger = Duration{60'000};
  request.deadline = client.clock.now() + Duration{500};
  HttpCallbacks callbacks;
  callbacks.late = [](HttpOutcome) {};
  REQUIRE(client.begin(std::move(request), nullptr, callbacks).get().phase == Phase::tx_part);
  CHECK(gone.get_future().get());
}

TEST_CASE("a streamed body comes in pieces and is ended by its reader") {
  RawServer server([&](Peer& peer, int) {
    while (!peer.request().empty()) {
      peer.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (const char* piece : {"5\r\nfirst\r\n", "6\r\nsecond\r\n"}) peer.write(piece), peer.pause(20);
      peer.write("0\r\n\r\n");
    }
  });
  Client client;
  for (int i = 0; i < 2; ++i) {
    std::string seen;
    HttpCallbacks callbacks;
    callbacks.stream = [](int status, const HttpHeaders& headers) {
      return status == 200 && headers.get("content-type") == "text/event-stream";
    };
    callbacks.chunk = [&](std::string_view piece) { return !(seen += piece).ends_with("second"); };
    const HttpOutcome outcome = client.begin(client.post(server.url()), nullptr, callbacks).get();
    CHECK(outcome.failure == Failure::none);
    CHECK(outcome.phase == Phase::rx_all);
    CHECK(outcome.body.empty());
    CHECK(seen == "firstsecond");
  }
}

TEST_CASE("tasks run on time, in order") {
  Client client;
  std::promise<std::vector<int>> all;
  std::vector<int> order;
  const Instant start = client.clock.now();
  client.http->at(start + Duration{60}, [&] { order.push_back(2), all.set_value(order); });
  client.http->at(start + Duration{30}, [&] { order.push_back(1); });
  CHECK(all.get_future().get() == std::vector<int>{1, 2});
  CHECK((client.clock.now() - start).count() >= 60);
}

TEST_CASE("stop ends everything without a callback") {
  RawServer server([&](Peer& peer, int) { peer.request(), peer.client_gone(); });
  Client client;
  std::atomic<int> called{0};
  HttpCallbacks callbacks;
  callbacks.done = [&](HttpOutcome) { ++called; };
  for (int i = 0; i < 20; ++i) client.http->start(client.post(server.url()), callbacks);
  client.http->start(client.post(named_url("stalled.test", 9)), callbacks);
  client.http->at(client.clock.now() + Duration{10'000}, [&] { ++called; });
  const Instant start = client.clock.now();
  client.http->stop();
  client.http->stop();
  CHECK((client.clock.now() - start).count() < 500);
  client.http->start(client.post(server.url()), callbacks);
  CHECK(called == 0);
}
