// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/otlp_answer.h"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>

#include "daemon/profile/otlp_fields.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using otlp::PartialSuccessField;
using otlp::ResponseField;
using protozero::pbf_message;
using protozero::pbf_wire_type;

constexpr size_t kMaxMessageBytes = 200;

OtlpAnswer ReadPartialSuccess(pbf_message<PartialSuccessField> partial) {
  OtlpAnswer answer;
  while (partial.next()) {
    const auto field = partial.tag();
    const pbf_wire_type type = partial.wire_type();
    if (field == PartialSuccessField::kRejectedProfiles &&
        type == pbf_wire_type::varint) {
      answer.rejected_profiles =
          static_cast<uint64_t>(std::max<int64_t>(partial.get_int64(), 0));
    } else if (field == PartialSuccessField::kErrorMessage &&
               type == pbf_wire_type::length_delimited) {
      const protozero::data_view text = partial.get_view();
      answer.message = ksym::Printable(std::string_view(
          text.data(), std::min(text.size(), kMaxMessageBytes)));
    } else {
      partial.skip();
    }
  }
  return answer;
}

}  // namespace

// protozero throws where the bytes are no message.
OtlpAnswer ReadOtlpAnswer(std::string_view bytes) try {
  pbf_message<ResponseField> response(bytes.data(), bytes.size());
  while (response.next()) {
    if (response.tag() == ResponseField::kPartialSuccess &&
        response.wire_type() == pbf_wire_type::length_delimited) {
      return ReadPartialSuccess(response.get_message());
    }
    response.skip();
  }
  return {};
} catch (const protozero::exception&) {
  return {};
}

}  // namespace profd
