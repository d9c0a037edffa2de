#include "slide/tiff/tiff_file.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <limits>
#include <slidestream/error.hpp>

// libtiff before 4.5 has process-wide handlers only.
#define SLIDESTREAM_TIFF_HANDLERS_PER_FILE (TIFFLIB_VERSION >= 20221213)

namespace slidestream {

/// What libtiff's procedures are handed.
struct TiffClient {
  const File* file = nullptr;
  std::uint64_t position = 0;
  std::uint64_t bytes_left = 0;  ///< that may be read
  std::uint64_t bytes_read = 0;
  std::string message;
  std::exception_ptr failure;  ///< the first StorageError since the message was cleared
};

namespace {

void keep_first(std::string& message, const char* module, const char* format, std::va_list arguments) {
  if (!message.empty()) return;
  std::array<char, 400> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  if (module != nullptr && *module != '\0') message = std::string(module) + ": ";
  message = without_control_characters(message + text.data());
}

#if SLIDESTREAM_TIFF_HANDLERS_PER_FILE

int keep_error(TIFF*, void* message, const char* module, const char* format, std::va_list arguments) {
  keep_first(*static_cast<std::string*>(message), module, format, arguments);
  return 1;  // and libtiff's own handler, which prints, isn't called
}

int drop_warning(TIFF*, void*, const char*, const char*, std::va_list) { return 1; }

#else

// The handle in use by this thread: errors of anybody else's handles in the process are not ours to keep.
thread_local TiffClient* client_of_this_thread = nullptr;

void keep_error_of_thread(thandle_t handle, const char* module, const char* format, std::va_list arguments) {
  if (handle == nullptr || handle != client_of_this_thread) return;
  keep_first(client_of_this_thread->message, module, format, arguments);
}

void silence_libtiff() {
  static const bool once = [] {
    TIFFSetWarningHandler(nullptr);
    TIFFSetErrorHandler(nullptr);
    TIFFSetErrorHandlerExt(keep_error_of_thread);
    return true;
  }();
  static_cast<void>(once);
}

#endif

TiffClient& client_of(thandle_t handle) { return *static_cast<TiffClient*>(handle); }

}  // namespace

TiffFile::TiffFile(const File& file, std::uint64_t largest_allocation, std::uint64_t most_read)
    : client_(std::make_unique<TiffClient>()) {
  client_->file = &file;
  client_->bytes_left = most_read;
  const TIFFReadWriteProc read = [](thandle_t handle, void* to, tmsize_t bytes) -> tmsize_t {
    TiffClient& client = client_of(handle);
    if (bytes <= 0) return 0;
    if (static_cast<std::uint64_t>(bytes) > client.bytes_left) return -1;
    client.bytes_left -= static_cast<std::uint64_t>(bytes);
    client.bytes_read += static_cast<std::uint64_t>(bytes);
    try {  // no exception may pass through libtiff
      const std::size_t got =
          client.file->read_some(client.position, {static_cast<std::byte*>(to), static_cast<std::size_t>(bytes)});
      client.position += got;
      return static_cast<tmsize_t>(got);
    } catch (const StorageError&) {
      if (!client.failure) client.failure = std::current_exception();
      return -1;
    } catch (const SlideError&) {
      return -1;
    }
  };
  const TIFFReadWriteProc write = [](thandle_t, void*, tmsize_t) -> tmsize_t { return 0; };
  const TIFFSeekProc seek = [](thandle_t handle, toff_t offset, int whence) -> toff_t {
    TiffClient& client = client_of(handle);
    if (whence == SEEK_CUR) offset += client.position;
    if (whence == SEEK_END) offset += client.file->size();
    client.position = offset;
    return offset;
  };
  const TIFFCloseProc close = [](thandle_t) { return 0; };
  const TIFFSizeProc size = [](thandle_t handle) -> toff_t { return client_of(handle).file->size(); };
  const TIFFMapFileProc map = [](thandle_t, void**, toff_t*) { return 0; };
  const TIFFUnmapFileProc unmap = [](thandle_t, void*, toff_t) {};

  // h: header only; m: no mapping; c: strips stay as they are in the file; D: tile arrays are read when needed.
  const char* mode = "rhmcD";
  // libtiff puts the name in front of some messages: whoever shows them knows the file, and names it once.
  const char* name = "";
#if SLIDESTREAM_TIFF_HANDLERS_PER_FILE
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(TIFFOpenOptionsAlloc(),
                                                                                 &TIFFOpenOptionsFree);
  if (!options) throw std::bad_alloc();
  const auto limit = std::min<std::uint64_t>(largest_allocation, std::numeric_limits<tmsize_t>::max());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(limit));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &client_->message);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), drop_warning, nullptr);
  tiff_ = TIFFClientOpenExt(name, mode, client_.get(), read, write, seek, close, size, map, unmap, options.get());
#else
  static_cast<void>(largest_allocation);
  silence_libtiff();
  clear_message();
  tiff_ = TIFFClientOpen(name, mode, client_.get(), read, write, seek, close, size, map, unmap);
#endif
  try {
    throw_read_failure();
    if (tiff_ == nullptr) throw_slide_error(file.path(), "libtiff can't open it: " + message());
  } catch (const SlideError&) {
    if (tiff_ != nullptr) TIFFClose(tiff_);
    throw;
  }
}

TiffFile::~TiffFile() {
  clear_message();
  TIFFClose(tiff_);
#if !SLIDESTREAM_TIFF_HANDLERS_PER_FILE
  client_of_this_thread = nullptr;
#endif
}

bool TiffFile::set_directory(std::uint64_t offset) {
  clear_message();
  const bool is_read = TIFFSetSubDirectory(tiff_, offset) == 1;
  throw_read_failure();
  return is_read;
}

void TiffFile::throw_read_failure() const {
  if (client_->failure) std::rethrow_exception(client_->failure);
}

std::uint64_t TiffFile::bytes_read() const noexcept { return client_->bytes_read; }

std::string TiffFile::message() const {
  if (client_->message.empty()) return "no reason given";
  return client_->message;
}

bool TiffFile::has_message() const noexcept { return !client_->message.empty(); }

void TiffFile::clear_message() {
  client_->message.clear();
  client_->failure = nullptr;
#if !SLIDESTREAM_TIFF_HANDLERS_PER_FILE
  client_of_this_thread = client_.get();
#endif
}

}  // namespace slidestream
