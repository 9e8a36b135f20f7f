#include "tools/mcp/tool_list.h"

#include "holdfast/core/json.h"

namespace holdfast::tools::mcp {
namespace {

constexpr std::size_t kMaxPages = 200;
constexpr std::size_t kMaxTools = 20'000;

}  // namespace

Result<ListPage> read_list_page(std::string_view result) {
  const Result<json::Value> root = json::parse(result);
  if (!root) return std::unexpected(root.error());
  const json::Value* tools = root->find("tools");
  if (tools == nullptr || !tools->is(json::Kind::array)) {
    return std::unexpected(Error{"bad_list", "the tools/list result has no array `tools`", "/tools"});
  }
  ListPage page;
  for (const json::Value& tool : tools->items) {
    const json::Value* name = tool.find("name");
    if (name == nullptr || !name->is(json::Kind::string)) continue;
    const json::Value* hint = json::at(tool, "/annotations/readOnlyHint");
    page.tools.push_back({name->text(), hint != nullptr && hint->is_true()});
  }
  const json::Value* next = root->find("nextCursor");
  if (next != nullptr && next->is(json::Kind::string)) page.next_cursor = next->text();
  return page;
}

void ToolList::begin() {
  incoming_.clear();
  pages_ = 0;
}

bool ToolList::add(const ListPage& page, const ServerConfig& server, Catalog& catalog) {
  if (++pages_ > kMaxPages || incoming_.size() + page.tools.size() > kMaxTools) return false;
  for (const ListedTool& tool : page.tools) {
    incoming_.insert(tool.name);
    if (server.trust_annotations) catalog.learn(server, tool.name, tool.read_only_hint);
  }
  return true;
}

void ToolList::complete(Instant now) {
  names_ = std::move(incoming_);
  incoming_.clear();
  known_ = true;
  at_ = now;
}

}  // namespace holdfast::tools::mcp
