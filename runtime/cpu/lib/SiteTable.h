//===- SiteTable.h - Small numbers for ops ----------------------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_SITETABLE_H
#define LOWLP_CPU_LIB_SITETABLE_H

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace lowlp {
namespace cpu {

/// Numbers the sites of one launch, so that a shadow can keep them in 16 bits.
/// Thread-safe. Sites beyond the 65535th share the number 0.
class SiteTable {
public:
  uint16_t getNumber(const char *site) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = numbers.find(site);
    if (found != numbers.end())
      return found->second;
    if (sites.size() > UINT16_MAX)
      return 0;
    sites.push_back(site);
    numbers[site] = uint16_t(sites.size() - 1);
    return uint16_t(sites.size() - 1);
  }

  const char *getSite(uint16_t number) {
    std::lock_guard<std::mutex> lock(mutex);
    return sites[number];
  }

private:
  std::mutex mutex;
  std::vector<const char *> sites{"another op"};
  std::unordered_map<const char *, uint16_t> numbers;
};

/// One worker's view of the table, which asks it once for each site.
class SiteNumbers {
public:
  explicit SiteNumbers(SiteTable &table) : table(table) {}

  uint16_t operator()(const char *site) {
    Entry &entry =
        entries[(uintptr_t(site) ^ uintptr_t(site) >> 8) % entries.size()];
    if (entry.site != site)
      entry = {site, table.getNumber(site)};
    return entry.number;
  }

private:
  struct Entry {
    const char *site = nullptr;
    uint16_t number = 0;
  };
  SiteTable &table;
  std::array<Entry, 256> entries;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_SITETABLE_H
