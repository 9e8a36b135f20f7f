// How an exchange ended, judged by what was seen rather than by libcurl's code alone: one code spans many
// phases.
#include <cstring>

#include "tools/http_client_exchange.h"

namespace holdfast::tools {
namespace {

curl_off_t microseconds(const Exchange& exchange, CURLINFO which) {
  curl_off_t value = 0;
  curl_easy_getinfo(exchange.easy, which, &value);
  return value;
}

bool is_shortage(long error) {
  return error == EMFILE || error == ENFILE || error == EADDRNOTAVAIL || error == ENOBUFS || error == ENOMEM;
}

long os_error(const Exchange& exchange) {
  long error = 0;
  curl_easy_getinfo(exchange.easy, CURLINFO_OS_ERRNO, &error);
  return error;
}

bool says(const Exchange& exchange, const char* words) {
  return std::strstr(exchange.error.data(), words) != nullptr;
}

Failure handshake_failure(const Exchange& exchange, CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return Failure::tls_certificate;
    default:
      break;
  }
  // A cut handshake may go well next time; versions and algorithms that do not meet will not.
  if (says(exchange, "SSL_ERROR_SYSCALL") || says(exchange, "unexpected eof") || says(exchange, "reset"))
    return Failure::tls_handshake;
  const bool disagreement = says(exchange, "version") || says(exchange, "protocol") ||
                            says(exchange, "alert") || says(exchange, "cipher");
  return disagreement ? Failure::tls_certificate : Failure::tls_handshake;
}

Failure never_sent_failure(const Exchange& exchange, CURLcode code, Phase phase) {
  const Seen& seen = exchange.seen;
  if (seen.address_refused && (!seen.socket_opened || code == CURLE_ABORTED_BY_CALLBACK))
    return Failure::address_refused;
  if (seen.local_resource || is_shortage(os_error(exchange))) return Failure::local_resource;
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Failure::address_refused;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
      return Failure::local_resource;
    case CURLE_COULDNT_RESOLVE_HOST:
      return Failure::dns_temporary;
    default:
      break;
  }
  if (phase == Phase::dns || phase == Phase::local) return Failure::dns_temporary;
  if (phase == Phase::tcp) return Failure::connect;
  return phase == Phase::tls ? handshake_failure(exchange, code) : Failure::dead_connection;
}

Failure no_head_failure(const Exchange& exchange, CURLcode code) {
  const Seen& seen = exchange.seen;
  if (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_HTTP2)
    return Failure::bad_framing;
  if (code == CURLE_SSL_CLIENTCERT || says(exchange, "certificate required"))
    return Failure::tls_client_certificate;
  const bool answered = seen.received > 0 || seen.raw_received;
  return all_sent(exchange) || answered ? Failure::connection_lost : Failure::send_cut;
}

Failure body_failure(const Exchange& exchange, CURLcode code) {
  if (code == CURLE_BAD_CONTENT_ENCODING || code == CURLE_WRITE_ERROR) return Failure::body_unreadable;
  if (code == CURLE_WEIRD_SERVER_REPLY || says(exchange, "chunked-encoding")) return Failure::bad_framing;
  return Failure::body_cut;
}

Failure failure_of(const Exchange& exchange, CURLcode code, Phase phase) {
  const Seen& seen = exchange.seen;
  if (seen.too_large) return Failure::too_large;
  if (seen.bad_framing) return Failure::bad_framing;
  if (seen.stopped) return Failure::none;
  if (seen.sent == 0 && !seen.head_complete) return never_sent_failure(exchange, code, phase);
  if (!seen.head_complete) return no_head_failure(exchange, code);
  if (code != CURLE_OK) return body_failure(exchange, code);
  return seen.decoder && !seen.decoder->whole() ? Failure::body_unreadable : Failure::none;
}

std::string counted(std::uint64_t n) {
  return n == 1 ? "1 byte" : std::to_string(n) + " bytes";
}

std::string traffic(const HttpOutcome& outcome) {
  if (outcome.bytes_sent == 0) return "nothing sent";
  return counted(outcome.bytes_sent) + " sent, " + std::to_string(outcome.bytes_received) + " received";
}

std::string_view failed_words(Failure failure) {
  switch (failure) {
    case Failure::dns_temporary:
      return "the name could not be resolved";
    case Failure::dns_not_found:
      return "the name does not exist";
    case Failure::address_refused:
      return "the name resolves to a private address, which the server's settings forbid";
    case Failure::local_resource:
      return "no descriptor, port or memory was left here for a connection";
    case Failure::connect:
      return "no connection could be made";
    case Failure::tls_handshake:
      return "the TLS handshake was cut";
    case Failure::tls_certificate:
      return "the TLS handshake failed for good";
    case Failure::tls_client_certificate:
      return "the server wants a client certificate";
    case Failure::dead_connection:
      return "the connection died before the request";
    case Failure::send_cut:
      return "the connection was cut while the request was sent";
    case Failure::connection_lost:
      return "the connection was lost before the answer's head was complete";
    case Failure::bad_framing:
      return "the answer is no valid HTTP";
    case Failure::body_unreadable:
      return "the answer's body could not be decoded";
    case Failure::body_cut:
      return "the connection was lost inside the answer's body";
    default:
      return "the exchange failed";
  }
}

std::string failed_sentence(const Exchange& exchange, const HttpOutcome& outcome) {
  std::string out =
      exchange.seen.problem.empty() ? std::string(failed_words(outcome.failure)) : exchange.seen.problem;
  if (outcome.failure == Failure::connect && os_error(exchange) != 0)
    (out += ": ") += std::strerror(static_cast<int>(os_error(exchange)));
  if (outcome.failure == Failure::tls_certificate && exchange.error[0] != '\0')
    (out += ": ") += exchange.error.data();
  if (outcome.status > 0) (out += "; status ") += std::to_string(outcome.status);
  return (out += "; ") += traffic(outcome);
}

std::string cut_sentence(const Exchange& exchange, const HttpOutcome& outcome, std::string limit) {
  std::string out;
  switch (outcome.phase) {
    case Phase::local:
      out = "not started" + limit;
      break;
    case Phase::dns:
      out = "the name was not resolved" + limit;
      break;
    case Phase::tcp:
      out = "no connection" + limit;
      break;
    case Phase::tls:
      out = "the TLS handshake was not complete" + limit;
      break;
    case Phase::tx0:
    case Phase::tx_part:
      out = "the request was not taken" + limit;
      break;
    case Phase::tx_all:
      out = "no answer" + limit;
      break;
    case Phase::rx_part_head:
      out = "the answer's head was not complete" + limit;
      break;
    default:
      out = "the answer (status " + std::to_string(exchange.seen.status) + ") was not complete" + limit;
      break;
  }
  return (out += "; ") += traffic(outcome);
}

void fill_counts(const Exchange& exchange, HttpOutcome& outcome) {
  const Seen& seen = exchange.seen;
  outcome.status = seen.head_complete || seen.too_large || seen.bad_framing ? seen.status : 0;
  outcome.bytes_sent = exchange.earlier_sent + seen.sent;
  outcome.bytes_received = exchange.earlier_received + seen.received;
  outcome.reused_connection = seen.reused;
}

// A redirected read has been seen by its first server, whatever became of a later hop: it is never "not sent"
// again.
void keep_earlier_hops(const Exchange& exchange, HttpOutcome& outcome) {
  if (exchange.earlier_sent == 0 || outcome.phase >= Phase::tx_part) return;
  outcome.phase = Phase::tx_all;
  if (outcome.failure != Failure::timeout && outcome.failure != Failure::cancelled)
    outcome.failure = Failure::connection_lost;
  outcome.detail = "after a redirect: " + outcome.detail;
}

}  // namespace

bool all_sent(const Exchange& exchange) {
  return exchange.seen.head_end == 4 && exchange.seen.body_sent >= exchange.request.body.size();
}

Phase phase_of(const Exchange& exchange) {
  const Seen& seen = exchange.seen;
  if (seen.head_complete) return seen.body_bytes > 0 ? Phase::rx_part_body : Phase::rx_head;
  if (seen.received > 0 || seen.raw_received) return Phase::rx_part_head;
  if (seen.sent > 0) return all_sent(exchange) ? Phase::tx_all : Phase::tx_part;
  if (seen.ready) return Phase::tx0;
  if (!seen.socket_opened) return Phase::dns;
  if (seen.tls_started) return Phase::tls;
  return is_tls(exchange) || microseconds(exchange, CURLINFO_CONNECT_TIME_T) == 0 ? Phase::tcp : Phase::tx0;
}

HttpOutcome outcome_of(Exchange& exchange, CURLcode code) {
  look_at_socket(exchange);
  Seen& seen = exchange.seen;
  HttpOutcome outcome;
  outcome.phase = phase_of(exchange);
  outcome.failure = failure_of(exchange, code, outcome.phase);
  if (outcome.failure == Failure::none) outcome.phase = Phase::rx_all;
  if (outcome.failure == Failure::address_refused)
    outcome.phase =
        code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ? Phase::local : Phase::dns;
  fill_counts(exchange, outcome);
  if (outcome.failure != Failure::none) outcome.detail = failed_sentence(exchange, outcome);
  outcome.headers = std::move(seen.headers);
  outcome.body = std::move(seen.body);
  keep_earlier_hops(exchange, outcome);
  return outcome;
}

HttpOutcome cut_outcome(Exchange& exchange, Failure failure, Instant now) {
  look_at_socket(exchange);
  HttpOutcome outcome;
  outcome.phase = phase_of(exchange);
  outcome.failure = failure;
  fill_counts(exchange, outcome);
  const auto text = [](Duration d) { return std::to_string(d.count()) + " ms"; };
  outcome.detail = cut_sentence(exchange, outcome,
                                failure == Failure::timeout
                                    ? " within " + text(exchange.request.deadline - exchange.started)
                                    : " when the call was cancelled after " + text(now - exchange.started));
  outcome.headers = exchange.seen.headers;
  outcome.body = exchange.seen.body;
  keep_earlier_hops(exchange, outcome);
  return outcome;
}

}  // namespace holdfast::tools
