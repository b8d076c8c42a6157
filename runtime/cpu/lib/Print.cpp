//===- Print.cpp - What kernels write to standard output ------------------===//

#include "lowlp/CPU/ABI.h"

#include <cstdio>
#include <cstring>

namespace {

constexpr size_t maxLine = 4096;

/// A line in the making; what does not fit is cut off.
struct Line {
  char text[maxLine];
  size_t length = 0;

  void add(const char *begin, size_t count) {
    size_t room = maxLine - 1 - length;
    count = count < room ? count : room;
    std::memcpy(text + length, begin, count);
    length += count;
  }
};

} // namespace

/// Writes the value as the conversion at `place` says, and returns what comes
/// after the conversion.
static const char *addValue(Line &line, const char *place, uint64_t value) {
  char number[64];
  int written = 0;
  const char *end = place + 2;
  if (std::strncmp(place, "%lld", 4) == 0) {
    written = std::snprintf(number, sizeof(number), "%lld",
                            static_cast<long long>(value));
    end = place + 4;
  } else if (place[1] == 'd') {
    written = std::snprintf(number, sizeof(number), "%d",
                            static_cast<int32_t>(value));
  } else if (place[1] == 'u') {
    written = std::snprintf(number, sizeof(number), "%u",
                            static_cast<uint32_t>(value));
  } else {
    double wide;
    std::memcpy(&wide, &value, sizeof(wide));
    written = std::snprintf(number, sizeof(number), "%g", wide);
  }
  line.add(number, static_cast<size_t>(written));
  return end;
}

void lowlpCpuPrint(LowlpThread *, const char *format, const uint64_t *values) {
  Line line;
  while (*format) {
    if (format[0] != '%') {
      line.add(format++, 1);
    } else if (format[1] == '%') {
      line.add(format, 1);
      format += 2;
    } else {
      format = addValue(line, format, *values++);
    }
  }
  // One call, so that lines of other threads stand before or after.
  std::fwrite(line.text, 1, line.length, stdout);
  std::fflush(stdout);
}
