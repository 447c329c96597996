#include "net/http.h"

#include <algorithm>

#include "base/crypto.h"
#include "base/text.h"

namespace expanse::net {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string DecodeQueryText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
      continue;
    }
    if (text[i] == '%' && i + 2 < text.size()) {
      if (const auto byte = base::HexDecode(text.substr(i + 1, 2))) {
        out += *byte;
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

}  // namespace

void Headers::Set(std::string_view name, std::string value) {
  std::erase_if(fields_, [&](const auto& field) { return SameName(field.first, name); });
  fields_.emplace_back(std::string(name), std::move(value));
}

std::string_view Headers::Get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (SameName(key, name)) return base::Trim(value);
  }
  return {};
}

bool Headers::Has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return SameName(field.first, name); });
}

std::vector<QueryParameter> ParseQuery(std::string_view query) {
  std::vector<QueryParameter> parameters;
  if (query.empty()) return parameters;
  for (std::string_view pair : base::Split(query, '&')) {
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto value =
        equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
    parameters.push_back({DecodeQueryText(pair.substr(0, equals)), DecodeQueryText(value)});
  }
  return parameters;
}

std::string PercentEncode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || base::IsDigit(c) ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace expanse::net
