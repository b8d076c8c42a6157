//===- PendingCopies.cpp - Asynchronous copies in flight ------------------===//

#include "PendingCopies.h"

#include <algorithm>
#include <cstring>

using namespace lowlp::cpu;

constexpr int64_t bytesPerWord = 4;
constexpr uintptr_t bytesPerLine = 16;

static char *addressOf(const Access &access) {
  return static_cast<char *>(const_cast<void *>(access.base)) +
         access.byteOffset;
}

void PendingCopy::moveBytes() const {
  char *to = addressOf(destination);
  if (source.bytes == destination.bytes) {
    std::memcpy(to, addressOf(source), size_t(source.bytes));
    return;
  }
  std::memset(to, 0, size_t(destination.bytes));
  if (source.bytes > 0)
    std::memcpy(to + leadingBytes, addressOf(source), size_t(source.bytes));
}

void PendingCopies::reset(const char *shared, int64_t sharedBytes) {
  this->shared = shared;
  this->sharedBytes = sharedBytes;
  if (numMarks == 0)
    return;
  std::fill(words.begin(), words.end(), 0);
  lines.clear();
  pool.clear();
  freeNumbers.clear();
  numMarks = 0;
}

void PendingCopies::setWords(int64_t byteOffset, int64_t bytes, uint32_t mark) {
  if (words.empty())
    words.resize(size_t(sharedBytes / bytesPerWord + 1));
  std::fill_n(words.begin() + byteOffset / bytesPerWord, bytes / bytesPerWord,
              mark);
}

void PendingCopies::addLines(const char *address, int64_t bytes, Mark mark) {
  uintptr_t last = (uintptr_t(address) + uintptr_t(bytes) - 1) / bytesPerLine;
  for (uintptr_t line = uintptr_t(address) / bytesPerLine; line <= last; ++line)
    lines.emplace(line, mark);
}

void PendingCopies::removeLines(const char *address, int64_t bytes, Mark mark) {
  uintptr_t last = (uintptr_t(address) + uintptr_t(bytes) - 1) / bytesPerLine;
  for (uintptr_t line = uintptr_t(address) / bytesPerLine; line <= last;
       ++line) {
    auto [begin, end] = lines.equal_range(line);
    for (auto found = begin; found != end; ++found)
      if (found->second.number == mark.number &&
          found->second.isWritten == mark.isWritten) {
        lines.erase(found);
        break;
      }
  }
}

PendingCopies::Number PendingCopies::add(const PendingCopy &copy) {
  Number number = Number(pool.size());
  if (freeNumbers.empty()) {
    pool.push_back(copy);
  } else {
    number = freeNumbers.back();
    freeNumbers.pop_back();
    pool[number] = copy;
  }
  ++numMarks;
  const char *to = addressOf(copy.destination);
  if (isShared(to))
    setWords(to - shared, copy.destination.bytes, number + 1);
  else
    addLines(to, copy.destination.bytes, {number, /*isWritten=*/true});
  if (marksSource(copy))
    addLines(addressOf(copy.source), copy.source.bytes,
             {number, /*isWritten=*/false});
  return number;
}

/// Nobody can write to memory that has no shadow.
bool PendingCopies::marksSource(const PendingCopy &copy) const {
  return copy.source.bytes > 0 && copy.sourcePlace->shadow && !copy.isRead;
}

void PendingCopies::setRead(Number number) {
  PendingCopy &copy = pool[number];
  if (marksSource(copy))
    removeLines(addressOf(copy.source), copy.source.bytes,
                {number, /*isWritten=*/false});
  copy.isRead = true;
}

void PendingCopies::remove(Number number) {
  setRead(number);
  const PendingCopy &copy = pool[number];
  const char *to = addressOf(copy.destination);
  if (isShared(to))
    setWords(to - shared, copy.destination.bytes, 0);
  else
    removeLines(to, copy.destination.bytes, {number, /*isWritten=*/true});
  freeNumbers.push_back(number);
  --numMarks;
}

void PendingCopies::addMbarrier(int64_t byteOffset) {
  setWords(byteOffset, 2 * bytesPerWord, mbarrierMark);
  ++numMarks;
}

Obstacle PendingCopies::find(const char *address, int64_t bytes,
                             bool isWrite) const {
  if (!words.empty() && isShared(address)) {
    int64_t first = address - shared;
    for (int64_t word = first / bytesPerWord;
         word <= (first + bytes - 1) / bytesPerWord; ++word)
      if (uint32_t mark = words[size_t(word)]) {
        if (mark == mbarrierMark)
          return {nullptr, false, true};
        return {&pool[mark - 1], true, false};
      }
  }
  if (lines.empty())
    return {};
  uintptr_t begin = uintptr_t(address), end = begin + uintptr_t(bytes);
  for (uintptr_t line = begin / bytesPerLine; line <= (end - 1) / bytesPerLine;
       ++line) {
    auto [first, last] = lines.equal_range(line);
    for (auto found = first; found != last; ++found) {
      const auto &[number, isWritten] = found->second;
      if (!isWrite && !isWritten)
        continue;
      const PendingCopy &copy = pool[number];
      const Access &held = isWritten ? copy.destination : copy.source;
      auto heldBegin = uintptr_t(addressOf(held));
      if (begin < heldBegin + uintptr_t(held.bytes) && heldBegin < end)
        return {&copy, isWritten, false};
    }
  }
  return {};
}
