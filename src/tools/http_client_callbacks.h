#pragma once
// libcurl's callbacks for one exchange; `self` is the Exchange, of on_close_socket the ExchangeHost.
#include "tools/http_client_exchange.h"

namespace holdfast::tools {

int on_debug(CURL*, curl_infotype type, char* data, std::size_t size, void* self);
curl_socket_t on_open_socket(void* self, curlsocktype, curl_sockaddr* address);
int on_close_socket(void* self, curl_socket_t socket);
int on_ready(void* self, char* remote_address, char* local_address, int remote_port, int local_port);
std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

}  // namespace holdfast::tools
