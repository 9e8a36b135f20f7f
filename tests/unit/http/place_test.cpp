// Where a listener stands, and who may come in how often.
#include <sys/stat.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "http/listener.h"
#include "test_server.h"

namespace holdfast::http {
namespace {

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-http-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

int connect_to(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return socket;
  ::close(socket);
  return -1;
}

std::string ask_health(int socket) {
  const std::string request = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::recv(socket, buffer, sizeof buffer, 0)) > 0;) answer.append(buffer, static_cast<std::size_t>(n));
  ::close(socket);
  return answer;
}

mode_t mode_of(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}

const std::string kHealth = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

}  // namespace

TEST_CASE("a unix socket is served, has its mode, and is gone when the server stops") {
  const Folder folder;
  const std::string path = folder.path / "client.sock";
  SystemClock clock;
  for (const unsigned mode : {0600U, 0660U}) {
    auto server = make_server(clock, {.name = "test", .listen = "unix:" + path, .socket_mode = mode});
    server->route("GET", "/healthz", Access::open, [](Request& r) -> Outcome { return Response{.body = r.remote_address}; });
    CHECK(server->listen() == "unix:" + path);
    CHECK(mode_of(path) == mode);
    CHECK(body_of(ask_health(connect_to(path))) == "unix");
    server->stop();
    CHECK_FALSE(std::filesystem::exists(path));
  }
}

TEST_CASE("only what nobody listens on is replaced") {
  const Folder folder;
  const std::string path = folder.path / "client.sock";
  const auto first = open_listener("unix:" + path);
  REQUIRE(first.has_value());
  const auto second = open_listener("unix:" + path);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().message.find("another server listens there") != std::string::npos);
  ::close(first->socket);  // as after a kill: the file stays
  REQUIRE(std::filesystem::exists(path));
  const auto third = open_listener("unix:" + path);
  REQUIRE(third.has_value());
  ::close(third->socket);
  const std::string file = folder.path / "precious";
  std::ofstream(file) << "data";
  CHECK_FALSE(open_listener("unix:" + file).has_value());
  CHECK(std::filesystem::file_size(file) == 4);
  CHECK_FALSE(open_listener("unix:" + std::string(200, 'x')).has_value());
}

TEST_CASE("one address cannot take the place of all") {
  TestServer test({.connections = 10, .connections_per_address = 2});
  test.listen();
  RawClient one(test.address), two(test.address);
  for (RawClient* client : {&one, &two}) {
    client->send(kHealth);
    CHECK(status_of(client->answer()) == 200);
  }
  RawClient three(test.address);
  const std::string answer = three.answer();
  CHECK(status_of(answer) == 503);
  CHECK(answer.find("Retry-After: ") != std::string::npos);
  one.hang_up();
  CHECK(eventually([&] {
    RawClient next(test.address);
    next.send(kHealth);
    return status_of(next.answer()) == 200;
  }));
}

TEST_CASE("without a cap of its own this machine may use every connection") {
  TestServer test({.connections = 8});
  test.listen();
  std::vector<RawClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(test.address).send(kHealth);
    CHECK(status_of(clients.back().answer()) == 200);
  }
}

TEST_CASE("an IPv6 client counts by its network") {
  CHECK(address_group("2001:db8:1:2:aaaa::1") == address_group("2001:db8:1:2:bbbb::2"));
  CHECK(address_group("2001:db8:1:2::1") != address_group("2001:db8:1:3::1"));
  CHECK(address_group("192.0.2.1") != address_group("192.0.2.2"));
}

TEST_CASE("wrong tokens are held back by address, a known one is not") {
  Options options;
  options.authenticate = [](std::string_view bearer) -> std::optional<Identity> {
    if (bearer == "right") return Identity{"nightly", false};
    return std::nullopt;
  };
  TestServer test(std::move(options));
  test.listen();
  const auto ask = [&](const std::string& headers) {
    RawClient client(test.address);
    client.send("POST /client HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n" + headers + "\r\n");  // no body follows
    return client.answer();
  };
  for (int i = 0; i < 50; ++i) REQUIRE(status_of(ask("Authorization: Bearer wrong\r\n")) == 401);
  std::string answer;
  CHECK(eventually([&] { return status_of(answer = ask("Authorization: Bearer wrong\r\n")) == 429; }));
  CHECK(answer.find("Retry-After: ") != std::string::npos);
  CHECK(answer.find("too_many_failures") != std::string::npos);
  CHECK(status_of(ask("")) == 401);
  RawClient honest(test.address);
  honest.send("POST /client HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nAuthorization: Bearer right\r\n\r\n");
  CHECK(status_of(honest.answer()) == 200);
}

}  // namespace holdfast::http
