// Lists of the API that come in pages, as one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/result.h"

namespace expanse::cli {

inline constexpr std::size_t kLargestPage = 1000;  // the API's

// As many pages as `limit` rows need, as one response. `rows` gives the response's repeated
// field, `fetch` makes one call. Ends also when a server gives the same page
// token again, or none of the rows that it promised.
template <typename Response, typename Request, typename Rows, typename Fetch>
base::Result<Response> ListPages(Request request, std::size_t limit, const Rows& rows,
                                 const Fetch& fetch) {
  Response all;
  auto* taken = rows(all);
  while (true) {
    const std::size_t left = limit - static_cast<std::size_t>(taken->size());
    request.set_page_size(static_cast<std::uint32_t>(std::min(left, kLargestPage)));
    EXPANSE_ASSIGN_OR_RETURN(Response page, fetch(request));
    auto* more = rows(page);
    for (auto& row : *more) {
      if (static_cast<std::size_t>(taken->size()) < limit) *taken->Add() = std::move(row);
    }
    all.set_next_page_token(page.next_page_token());
    if (page.next_page_token().empty() || page.next_page_token() == request.page_token() ||
        more->empty() || static_cast<std::size_t>(taken->size()) >= limit) {
      return all;
    }
    request.set_page_token(page.next_page_token());
  }
}

}  // namespace expanse::cli
