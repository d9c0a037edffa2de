#define DOCTEST_CONFIG_IMPLEMENT
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>

#include "support/test_data.hpp"
#include "support/wide.hpp"

/// \file
/// Test programs don't wait for storage: whether bytes have reached it shows only after a loss of power. Where a test
/// makes many files, the wait is most of its time. The deep check's "wide: ..." wait, and so does the program itself.

namespace {

bool waits_for_storage() {
  static const bool waits = slidestream::test::is_wide();
  return waits;
}

/// As the system's function answers where nothing is to be written.
int answer_for(int descriptor) { return ::fcntl(descriptor, F_GETFD) < 0 ? -1 : 0; }

/// Who syncs such a file wants to drop it from the page cache, which takes clean pages.
bool is_read_alone(int descriptor) {
  struct stat status {};
  return (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY && ::fstat(descriptor, &status) == 0 &&
         S_ISREG(status.st_mode);
}

/// Whether the pass through a test case that runs has said that it is skipped.
std::atomic<bool> is_skipped{false};

/// Counts passes through test cases, and those that were skipped.
struct SkippedPasses : doctest::IReporter {
  explicit SkippedPasses(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { cases = stats.numTestCasesPassingFilters; }
  void test_case_start(const doctest::TestCaseData& /*data*/) override { is_skipped = false; }
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override { end_pass(); }
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override { end_pass(); }
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& data) override {
    // Behind doctest's own line, which begins with the file.
    if (const std::string text = data.m_string.c_str(); text.starts_with("SKIPPED: ")) {
      slidestream::test::report_skipped(text.substr(text.find(' ') + 1));
    }
  }
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}

  static void end_pass() { ++(is_skipped.exchange(false) ? skipped : tried); }

  inline static int skipped = 0, tried = 0;
  inline static unsigned cases = 0;
};

REGISTER_LISTENER("skipped passes", 1, SkippedPasses);

}  // namespace

void slidestream::test::report_skipped(const std::string& why) {
  std::cout << "SKIPPED: " << why << '\n';
  is_skipped = true;
}

/// Status 77 where all that ran was skipped and nothing failed. SLIDESTREAM_TEST_CASES: so many cases are to be chosen.
int main(int count, char** arguments) {
  doctest::Context context(count, arguments);
  const int status = context.run();
  if (status != 0 || context.shouldExit()) return status;
  const char* wanted = std::getenv("SLIDESTREAM_TEST_CASES");
  if (wanted != nullptr && std::to_string(SkippedPasses::cases) != wanted) {
    std::cout << SkippedPasses::cases << " test cases were chosen, not " << wanted << '\n';
    return 1;
  }
  return SkippedPasses::skipped > 0 && SkippedPasses::tried == 0 ? 77 : 0;
}

extern "C" int fsync(int descriptor) {
  static const auto real = reinterpret_cast<decltype(&fsync)>(dlsym(RTLD_NEXT, "fsync"));
  return waits_for_storage() ? real(descriptor) : answer_for(descriptor);
}

extern "C" int fdatasync(int descriptor) {
  static const auto real = reinterpret_cast<decltype(&fdatasync)>(dlsym(RTLD_NEXT, "fdatasync"));
  return waits_for_storage() || is_read_alone(descriptor) ? real(descriptor) : answer_for(descriptor);
}

extern "C" int sync_file_range(int descriptor, off_t from, off_t count, unsigned flags) {
  static const auto real = reinterpret_cast<decltype(&sync_file_range)>(dlsym(RTLD_NEXT, "sync_file_range"));
  return waits_for_storage() ? real(descriptor, from, count, flags) : answer_for(descriptor);
}
