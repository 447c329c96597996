#include "intelligence/runbook_service.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "expanse/intelligence/v1/intelligence_service.pb.h"
#include "intelligence/callers.h"

namespace expanse::intelligence {
namespace {

using base::Code;

constexpr std::size_t kLongestId = 64;

void PutSummary(const diagnose::Runbook& in, v1::RunbookSummary* out) {
  out->set_id(in.id);
  out->set_family(base::ToValidUtf8(in.family));
  out->set_kind(std::string(diagnose::Name(in.kind)));
  out->set_owner(std::string(diagnose::Name(in.owner)));
  out->set_title(base::ToValidUtf8(in.title));
  out->set_origin(in.embedded ? "embedded" : base::ToValidUtf8(in.file));
}

}  // namespace

base::Result<v1::ListRunbooksResponse> RunbookService::ListRunbooks(
    const net::CallContext& context, const v1::ListRunbooksRequest&) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  const Runbooks current = source_.Current();
  std::vector<const diagnose::Runbook*> all;
  for (const diagnose::Runbook& runbook : current.set->runbooks()) all.push_back(&runbook);
  std::ranges::sort(all, {}, [](const diagnose::Runbook* runbook) { return runbook->id; });
  v1::ListRunbooksResponse response;
  for (const diagnose::Runbook* runbook : all) PutSummary(*runbook, response.add_runbooks());
  response.set_site_error(base::ToValidUtf8(current.site_error));
  return response;
}

base::Result<v1::GetRunbookResponse> RunbookService::GetRunbook(
    const net::CallContext& context, const v1::GetRunbookRequest& request) {
  EXPANSE_RETURN_IF_ERROR(RequireUser(context));
  if (request.id().empty() || request.id().size() > kLongestId)
    return base::Fail(Code::kInvalidArgument, "runbook.id", "name a runbook by its id");
  const Runbooks current = source_.Current();
  const diagnose::Runbook* runbook = current.set->Find(request.id());
  if (runbook == nullptr) {
    return base::Fail(Code::kNotFound, "runbook.not_found",
                      "there is no runbook " + base::EscapeForDisplay(request.id()));
  }
  v1::GetRunbookResponse response;
  PutSummary(*runbook, response.mutable_summary());
  response.set_yaml(base::ToValidUtf8(runbook->text));
  return response;
}

}  // namespace expanse::intelligence
