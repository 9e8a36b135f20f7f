#include "ledger/sqlite/answers.h"

#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {

AnswersKept count_answers(Connection& connection) {
  AnswersKept kept;
  Statement& rows = connection.statement(sql().answers_kept);
  const Reset reset(rows);
  if (rows.row()) rows.take(kept.rows, kept.bytes);
  return kept;
}

void put_answer(Connection& connection, const CachedAnswer& answer, AnswersKept& kept) {
  const auto bytes = static_cast<std::int64_t>(answer.result.size());
  std::int64_t replaced = 0;
  {
    Statement& rows =
        connection.statement(sql().answer_bytes).add(answer.server, answer.tool, answer.arguments);
    const Reset reset(rows);
    if (rows.row())
      rows.take(replaced);
    else
      ++kept.rows;
  }
  connection.statement(sql().put_answer)
      .add(answer.server, answer.tool, answer.arguments, answer.at, bytes, answer.result)
      .run();
  kept.bytes += bytes - replaced;
}

void trim_answers(Connection& connection, AnswersKept& kept, const AnswersKept& most) {
  while (kept.rows > 0 && (kept.rows > most.rows || kept.bytes > most.bytes)) {
    std::int64_t seq = 0;
    std::int64_t bytes = 0;
    {
      Statement& rows = connection.statement(sql().oldest_answer);
      const Reset reset(rows);
      if (!rows.row()) throw SQLite::Exception("cached answers are fewer than were counted", SQLITE_CORRUPT);
      rows.take(seq, bytes);
    }
    connection.statement(sql().drop_answer).add(seq).run();
    --kept.rows;
    kept.bytes -= bytes;
  }
}

std::optional<CachedAnswer> load_answer(Connection& connection, std::string_view server,
                                        std::string_view tool, std::string_view arguments) {
  std::optional<CachedAnswer> found;
  Statement& rows = connection.statement(sql().answer).add(server, tool, arguments);
  const Reset reset(rows);
  if (!rows.row()) return found;
  CachedAnswer& answer = found.emplace();
  answer.server = server;
  answer.tool = tool;
  answer.arguments = arguments;
  rows.take(answer.at, answer.result);
  return found;
}

}  // namespace holdfast::ledger::sqlite
