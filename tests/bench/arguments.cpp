#include "arguments.h"

#include <cstdint>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "peer.h"

namespace holdfast::bench {
namespace {

constexpr auto kUsage =
    "usage: holdfast_bench --binary FILE [--quick|--smoke] [--packages DIR] [--peers NAME,…|none] [--no-floor] [--ledger FILE]\n"
    "       [--tool plain|keyed|none] [--steps N,…] [--concurrency N,…] [--seconds N] [--warm-up N] [--repetitions N]";

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

template <class Number>
std::vector<Number> numbers(const std::string& list) {
  std::vector<Number> found;
  for (const std::string& word : split(list)) found.push_back(static_cast<Number>(std::stoul(word)));
  return found;
}

std::chrono::milliseconds milliseconds_of(const std::string& seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::stod(seconds) * 1000));
}

void apply_quick(Plan& plan) {
  plan.repetitions = 1;
  plan.concurrencies = {1, 64};
  plan.warm_up = std::chrono::milliseconds(500);
  plan.time = std::chrono::milliseconds(1500);
}

void apply_smoke(Plan& plan) {
  plan.repetitions = 1;
  plan.warm_up = std::chrono::milliseconds(50);
  plan.time = std::chrono::milliseconds(500);
  plan.concurrencies = {1, 16};
  plan.tools = {"keyed"};
}

std::vector<std::string> installed(const std::vector<std::string>& names, const std::string& packages) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (peer_is_installed(name, packages)) {
      found.push_back(name);
    } else {
      std::cerr << "not installed, so not compared: " << name << '\n';
    }
  }
  return found;
}

}  // namespace

Plan read_arguments(int count, char** words) {
  Plan plan;
  std::vector<std::string> peers{"restate", "bullmq", "dbos"};
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      if (i + 1 >= count) throw std::runtime_error(word + " needs a value\n" + kUsage);
      return std::string(words[++i]);
    };
    const auto list = [&] {
      const std::string text = value();
      return text == "none" ? std::vector<std::string>{} : split(text);
    };
    if (word == "--binary") {
      plan.binary = value();
    } else if (word == "--packages") {
      plan.packages = value();
    } else if (word == "--peers") {
      peers = list();
    } else if (word == "--ledger") {
      plan.ledger = value();
    } else if (word == "--quick") {
      apply_quick(plan);
    } else if (word == "--smoke") {
      apply_smoke(plan);
    } else if (word == "--no-floor") {
      plan.floor = false;
    } else if (word == "--tool") {
      plan.tools = list();
    } else if (word == "--steps") {
      plan.steps = numbers<int>(value());
    } else if (word == "--concurrency") {
      plan.concurrencies = numbers<std::size_t>(value());
    } else if (word == "--seconds") {
      plan.time = milliseconds_of(value());
    } else if (word == "--warm-up") {
      plan.warm_up = milliseconds_of(value());
    } else if (word == "--repetitions") {
      plan.repetitions = std::stoi(value());
    } else {
      throw std::runtime_error("unknown argument " + word + "\n" + kUsage);
    }
  }
  if (plan.binary.empty()) throw std::runtime_error(kUsage);
  if (!plan.packages.empty()) plan.peers = installed(peers, plan.packages);
  return plan;
}

}  // namespace holdfast::bench
