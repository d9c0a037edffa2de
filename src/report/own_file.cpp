#include "report/own_file.hpp"

#include <iterator>
#include <slidestream/error.hpp>
#include <system_error>

#include "ledger/attachments.hpp"

namespace slidestream::report {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_file(const fs::path& whole, const std::string& what) {
  throw SlideError(whole.string() + ": " + what);
}

fs::file_status file_status_of(const fs::path& whole, const fs::path& at) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(at, code);
  if (fs::is_symlink(status)) {
    refuse_file(whole, at == whole ? "is a link, which isn't followed"
                                   : "lies behind the link " + at.filename().string() + ", which isn't followed");
  }
  if (status.type() == fs::file_type::not_found) refuse_file(whole, "is missing");
  if (status.type() == fs::file_type::none) refuse_file(whole, code.message());
  return status;
}

}  // namespace

void check_own_file(const fs::path& folder, const std::string& file, std::uint64_t bytes) {
  const fs::path whole = folder / file;
  const fs::path named = file;
  if (!named.is_absolute()) {
    if (!is_inside(file)) refuse_file(whole, "lies outside of the results folder");
    fs::path at = folder;
    for (auto part = named.begin(); std::next(part) != named.end(); ++part) {
      at /= *part;
      if (part != named.begin()) static_cast<void>(file_status_of(whole, at));
    }
  }
  if (!fs::is_regular_file(file_status_of(whole, whole))) refuse_file(whole, "isn't a regular file");
  std::error_code code;
  const std::uint64_t found = bytes > 0 ? fs::file_size(whole, code) : 0;
  if (!code && found != bytes) refuse_file(whole, "was changed since it was written");
}

}  // namespace slidestream::report
