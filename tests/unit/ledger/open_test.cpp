// Who may open a database, and what is left of one that is refused.
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/sqlite/backup.h"
#include "ledger/sqlite/file.h"
#include "ledger/sqlite/migrate.h"
#include "support.h"

namespace holdfast::ledger {
namespace {

using namespace test;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Error refused(const Options& options) {
  const Result<Opened> opened = open_sqlite(options);
  REQUIRE_FALSE(opened);
  return opened.error();
}

void put_run(Opened& db, std::uint64_t n) {
  run::Run run = small_run(n);
  Batch batch;
  batch.new_runs = {&run};
  commit_or_fail(*db.ledger, batch);
}

}  // namespace

TEST_CASE("every file of the database is for its owner alone, whatever the umask") {
  const Folder folder;
  for (const unsigned mask : {0u, 077u, 0277u}) {
    const std::string path = folder / ("m" + std::to_string(mask) + ".db");
    const mode_t before = umask(static_cast<mode_t>(mask));
    {
      Opened db = open_or_fail(path);
      put_run(db, 1);
      REQUIRE(value_of(db.reader->runs({})).size() == 1);
      for (const char* suffix : {"", "-wal", "-shm", ".lock"}) CHECK(mode_of(path + suffix) == 0600u);
    }
    umask(before);
  }
}

TEST_CASE("a folder that does not exist is named") {
  const Folder folder;
  const Error error = refused({.path = folder / "no/such/folder/holdfast.db"});
  CHECK(error.code == "storage_error");
  CHECK(contains(error.message, "no/such/folder"));
  CHECK_FALSE(std::filesystem::exists(folder / "no"));
}

TEST_CASE("a missing file is an error where it may not be created") {
  const Folder folder;
  const Error error = refused({.path = folder.database(), .create = false});
  CHECK(error.code == "storage_error");
  CHECK(contains(error.message, folder.database()));
  CHECK_FALSE(std::filesystem::exists(folder.database()));
  CHECK_FALSE(std::filesystem::exists(folder.database() + ".lock"));
}

TEST_CASE("a second process is refused with the holder's pid, until the holder is gone") {
  const Folder folder;
  int ready[2], leave[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(leave) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const Result<Opened> db = open_sqlite({.path = folder.database()});
    const char ok = db ? 'y' : 'n';
    char end = 0;
    if (write(ready[1], &ok, 1) == 1 && read(leave[0], &end, 1) < 0) _exit(2);
    _exit(0);
  }
  char ok = 0;
  REQUIRE(read(ready[0], &ok, 1) == 1);
  REQUIRE(ok == 'y');
  const Error error = refused({.path = folder.database()});
  CHECK(error.code == "database_locked");
  CHECK(contains(error.message, std::to_string(child)));
  CHECK(contains(error.message, folder.database()));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  for (const int fd : {ready[0], ready[1], leave[0], leave[1]}) close(fd);
  open_or_fail(folder.database());
}

TEST_CASE("another name for the same file is the same database") {
  const Folder folder;
  std::filesystem::create_symlink(folder.database(), folder / "other.db");
  const Opened db = open_or_fail(folder.database());
  CHECK(refused({.path = folder / "other.db"}).code == "database_locked");
}

TEST_CASE("a file that is no Holdfast database is refused and left as it was") {
  const Folder folder;
  const std::string path = folder / "diary";
  SECTION("text") {
    put_bytes(path, std::string(9'000, 'd'));
  }
  SECTION("a few bytes") {
    put_bytes(path, "hello");
  }
  SECTION("a truncated header") {
    put_bytes(path, std::string("SQLite format 3\0", 16));
  }
  SECTION("another program's database") {
    Outsider(path).execute("CREATE TABLE t (x); PRAGMA user_version = 1");
  }
  SECTION("an empty database of another program") {
    Outsider(path).execute("PRAGMA application_id = 7; PRAGMA user_version = 1");
  }
  SECTION("another program's database in WAL mode") {
    Outsider(path).execute("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
  }
  const std::string before = bytes_of(path);
  const Error error = refused({.path = path});
  CHECK(error.code == "database_foreign");
  CHECK(contains(error.message, path));
  CHECK(bytes_of(path) == before);
  CHECK_FALSE(std::filesystem::exists(path + ".lock"));
}

TEST_CASE("a newer schema is refused and left as it was") {
  const Folder folder;
  const std::string path = folder.database();
  {
    Opened db = open_or_fail(path);
    put_run(db, 1);
  }
  const std::string bump = "PRAGMA user_version = " + std::to_string(sqlite::newest_version() + 1);
  SECTION("in the header") {
    Outsider(path).execute(bump);
    const std::string before = bytes_of(path);
    const Error error = refused({.path = path});
    CHECK(error.code == "schema_newer");
    CHECK(contains(error.message, path));
    CHECK(bytes_of(path) == before);
  }
  SECTION("in the WAL only") {
    {
      Outsider other(path);
      other.execute("PRAGMA wal_autocheckpoint = 0; " + bump);
      std::filesystem::copy_file(path, path + ".kept");
      std::filesystem::copy_file(path + "-wal", path + ".kept-wal");
    }
    std::filesystem::rename(path + ".kept", path);
    std::filesystem::rename(path + ".kept-wal", path + "-wal");
    const std::string before = bytes_of(path), wal = bytes_of(path + "-wal");
    REQUIRE(value_of(sqlite::read_header(path)).version == sqlite::newest_version());
    CHECK(refused({.path = path}).code == "schema_newer");
    CHECK(bytes_of(path) == before);
    CHECK(bytes_of(path + "-wal") == wal);
  }
}

TEST_CASE("an empty file becomes a database, and leftovers of an old one are not taken for its own") {
  const Folder folder;
  const std::string path = folder.database();
  put_bytes(path, "");
  put_bytes(path + "-wal", std::string(5'000, 'w'));
  put_bytes(path + ".new", "half made");
  Opened db = open_or_fail(path);
  put_run(db, 1);
  CHECK(value_of(db.reader->runs({})).size() == 1);
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_CASE("a migration and its version are one transaction") {
  const Folder folder;
  const std::string path = folder.database();
  open_or_fail(path);
  const std::uint32_t present = sqlite::newest_version();
  const std::vector<sqlite::Migration> steps{
      {present + 1, "good", "CREATE TABLE extra (x INTEGER) STRICT"},
      {present + 2, "bad", "CREATE TABLE half (x INTEGER) STRICT; INSERT INTO extra VALUES ('no number')"},
  };
  sqlite::Connection connection(path, sqlite::Role::writer, 256);
  CHECK_THROWS_AS(sqlite::migrate(connection, steps), SQLite::Exception);
  CHECK(connection.number("PRAGMA user_version") == present + 1);
  CHECK(connection.number("SELECT count(*) FROM sqlite_master WHERE name = 'extra'") == 1);
  CHECK(connection.number("SELECT count(*) FROM sqlite_master WHERE name = 'half'") == 0);
  CHECK(sqlite3_get_autocommit(connection.handle()) != 0);
}

TEST_CASE("a kill in the middle of a migration leaves the schema before it") {
  const Folder folder;
  const std::string path = folder.database();
  open_or_fail(path);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    static const sqlite::Migration step{sqlite::newest_version() + 1, "cut",
                                        "CREATE TABLE cut (x INTEGER) STRICT"};
    sqlite::Connection connection(path, sqlite::Role::writer, 256);
    sqlite3_commit_hook(
        connection.handle(), [](void*) -> int { _exit(kill(getpid(), SIGKILL)); }, nullptr);
    sqlite::migrate(connection, std::span(&step, 1));
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  {
    Opened db = open_or_fail(path);
    put_run(db, 1);
  }
  Outsider look(path);
  CHECK(look.text("PRAGMA user_version") == std::to_string(sqlite::newest_version()) + "\n");
  CHECK(look.text("SELECT count(*) FROM sqlite_master WHERE name = 'cut'") == "0\n");
  CHECK(look.text("PRAGMA integrity_check") == "ok\n");
}

TEST_CASE("a backup is a whole ledger of its own, and never takes another file's place") {
  const Folder folder;
  const std::string copy = folder / "copy.db";
  {
    Opened db = open_or_fail(folder.database());
    for (std::uint64_t n = 1; n <= 20; ++n) put_run(db, n);
    REQUIRE(db.ledger->backup(copy));
    put_run(db, 21);
    CHECK(mode_of(copy) == 0600u);
    const std::string before = bytes_of(copy);
    const auto again = db.ledger->backup(copy);
    REQUIRE_FALSE(again);
    CHECK(again.error().code == "exists");
    CHECK(bytes_of(copy) == before);
    const auto nowhere = db.ledger->backup(folder / "no/such/copy.db");
    REQUIRE_FALSE(nowhere);
    CHECK(contains(nowhere.error().message, "no/such"));
    CHECK_FALSE(std::filesystem::exists(copy + ".partial"));
  }
  Opened restored = open_or_fail(copy);
  CHECK(value_of(restored.reader->runs({.limit = 100})).size() == 20);
  put_run(restored, 22);
}

TEST_CASE("a backup says that it is one until a batch adopts it, also across a migration") {
  const Folder folder;
  const std::string copy = folder / "copy.db";
  {
    Opened db = open_or_fail(folder.database());
    put_run(db, 1);
    REQUIRE(db.ledger->backup(copy));
    CHECK_FALSE(value_of(db.ledger->load_open()).restored);
  }
  {
    sqlite::Connection connection(copy, sqlite::Role::writer, 256);
    const auto next = sqlite::Migration{sqlite::newest_version() + 1, "next", "CREATE TABLE next (x)"};
    sqlite::migrate(connection, std::array{next});
    CHECK(connection.number("PRAGMA application_id") == sqlite::kBackupId);
    connection.execute("DROP TABLE next");
    connection.execute("PRAGMA user_version = " + std::to_string(sqlite::newest_version()));
  }
  for (const bool first : {true, false}) {
    Opened db = open_or_fail(copy);
    CHECK(value_of(db.ledger->load_open()).restored.has_value() == first);
    Batch batch;
    batch.adopt = true;
    CHECK_FALSE(batch.empty());
    commit_or_fail(*db.ledger, batch);
    CHECK_FALSE(value_of(db.ledger->load_open()).restored);
  }
}

// HOLDFAST_WRITE_SCHEMA=1 unit_ledger "[schema]" writes schema/ledger.sql anew.
TEST_CASE("schema/ledger.sql is what the migrations produce", "[schema]") {
  const Folder folder;
  open_or_fail(folder.database());
  std::string schema = "-- The ledger's schema, version " + std::to_string(sqlite::newest_version()) +
                       ", as the files in migrations/ produce it. Generated: HOLDFAST_WRITE_SCHEMA=1 "
                       "unit_ledger \"[schema]\"\n\n";
  sqlite::Connection connection(folder.database(), sqlite::Role::reader, 256);
  static const std::string listing =
      "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY tbl_name, "
      "type DESC, name";
  sqlite::Statement& rows = connection.statement(listing);
  std::string text;
  while (rows.row()) {
    rows.take(text);
    schema += text + ";\n\n";
  }
  schema.pop_back();
  const std::string path = std::string(HOLDFAST_SOURCE_DIR) + "/schema/ledger.sql";
  if (std::getenv("HOLDFAST_WRITE_SCHEMA")) put_bytes(path, schema);
  CHECK(bytes_of(path) == schema);
}

}  // namespace holdfast::ledger
