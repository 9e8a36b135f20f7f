// ledger_rows FILE: takes a ledger that nobody has open and brings what its journal and its packed runs hold into rows, for tests that look with SQL.
#include <iostream>

#include "ledger/sqlite/open.h"
#include "ledger/sqlite/packed.h"

int main(int count, char** words) {
  using namespace holdfast::ledger;
  if (count != 2) return 2;
  try {
    if (const auto opened = open_sqlite({.path = words[1], .create = false}); !opened) {
      std::cerr << opened.error().message << '\n';
      return 1;
    }
    sqlite::Connection connection(words[1], sqlite::Role::writer, 8 * 1024);
    sqlite::lay_out_all(connection);
    return 0;
  } catch (const SQLite::Exception& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}
