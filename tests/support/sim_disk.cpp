#include "support/sim_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace holdfast::sim {

namespace {

void put_at(std::string& to, std::string_view bytes, std::uint64_t offset) {
  if (bytes.empty()) return;
  const std::uint64_t end = offset + bytes.size();
  if (to.capacity() < end) to.reserve(std::max<std::size_t>(end, to.capacity() * 2));
  if (to.size() == offset) {
    to.append(bytes);
    return;
  }
  if (to.size() < end) to.resize(end, '\0');
  std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::uint64_t mix(std::uint64_t hash, std::string_view bytes) {
  std::uint64_t word = 0;
  while (bytes.size() >= sizeof word) {
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
    bytes.remove_prefix(sizeof word);
  }
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Fates every(Fate fate) {
  return [fate](std::size_t, std::size_t) { return fate; };
}

Disk::Disk(std::uint64_t seed) : random_(seeded_random(seed)) {
  fates_ = [this](std::size_t, std::size_t) { return static_cast<Fate>(random_->up_to(3)); };
}

void Disk::put(const std::string& name, std::string bytes) {
  auto file = std::make_shared<Inode>();
  file->name = name;
  file->live = std::move(bytes);
  names_[name] = file;
  durable_names_[name] = file;
}

std::string Disk::content(const std::string& name) const {
  const auto file = find(name);
  return file ? *file->live : std::string{};
}

std::uint64_t Disk::size(const std::string& name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? 0 : it->second->live->size();
}

bool Disk::synced(const std::string& name) const {
  const auto seen = names_.find(name);
  const auto kept = durable_names_.find(name);
  if (seen == names_.end()) return kept == durable_names_.end();
  if (kept == durable_names_.end() || kept->second != seen->second || seen->second->durable) return false;
  return std::ranges::all_of(seen->second->pending, &Inode::Pending::truncates);
}

std::uint64_t Disk::digest() const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [name, file] : names_) hash = mix(mix(mix(hash, name), "="), *file->live);
  return hash;
}

std::unique_ptr<Disk> Disk::after_power_cut(std::uint64_t seed, const Fates& fates) const {
  auto other = std::make_unique<Disk>(seed);
  const auto copy = [](const Names& names, std::map<const Inode*, std::shared_ptr<Inode>>& made) {
    Names out;
    for (const auto& [name, file] : names) {
      auto& twin = made[file.get()];
      if (!twin) {
        twin = std::make_shared<Inode>();
        twin->name = file->name;
        twin->live = file->live;
        twin->durable = file->durable;
        twin->pending = file->pending;
        twin->covered = file->covered;
      }
      out.emplace(name, twin);
    }
    return out;
  };
  std::map<const Inode*, std::shared_ptr<Inode>> made;
  other->names_ = copy(names_, made);
  other->durable_names_ = copy(durable_names_, made);
  if (fates) other->fates_ = fates;
  other->cut_power();
  other->boot();
  return other;
}

Disk::Go Disk::begin(Operation operation, Inode* file, std::string_view bytes, std::uint64_t offset) {
  if (!running_) return Go::dead;
  const std::uint64_t number = ++operations_;
  if (log_) log_->push_back(operation);
  for (const Fault& fault : faults_) {
    if (number < fault.at || number > std::max(fault.at, fault.until)) continue;
    if (fault.only && *fault.only != operation) continue;
    switch (fault.kind) {
      case Fault::Kind::power_cut:
        if (file && operation == Operation::write) write(*file, bytes, offset);
        if (file && operation == Operation::truncate) truncate(*file, offset);
        cut_power();
        return Go::dead;
      case Fault::Kind::kill:
        kill();
        return Go::dead;
      case Fault::Kind::io_error:
        ++(operation == Operation::sync ? counts_.sync_errors : counts_.io_errors);
        return Go::fail;
      case Fault::Kind::short_read:
        if (operation != Operation::read) break;
        ++counts_.short_reads;
        return Go::cut_short;
      case Fault::Kind::disk_full:
        if (operation != Operation::write || !file || offset + bytes.size() <= file->live->size()) break;
        ++counts_.full;
        return Go::full;
    }
  }
  return Go::go;
}

std::shared_ptr<Inode> Disk::find(const std::string& name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? nullptr : it->second;
}

std::shared_ptr<Inode> Disk::make(const std::string& name) {
  auto file = std::make_shared<Inode>();
  file->name = name;
  if (!name.empty()) names_[name] = file;
  return file;
}

void Disk::remove(const std::string& name, bool sync_folder) {
  names_.erase(name);
  if (sync_folder) durable_names_ = names_;
}

void Disk::rename(const std::string& from, const std::string& to) {
  const auto file = names_.at(from);
  names_.erase(from);
  file->name = to;
  names_[to] = file;
}

void Disk::write(Inode& file, std::string_view bytes, std::uint64_t offset) {
  const std::uint64_t size = file.live->size();
  file.pending.push_back({offset, bytes.size(), size, file.covered.size(), false});
  if (offset < size) file.covered.append(*file.live, offset, bytes.size());
  put_at(file.live.to_write(), bytes, offset);
}

void Disk::truncate(Inode& file, std::uint64_t size) {
  file.pending.push_back({size, 0, file.live->size(), file.covered.size(), true});
  if (size < file.live->size()) file.covered.append(*file.live, size);
  file.live.to_write().resize(size, '\0');
}

/// Newest first, each write is lifted off what it covered.
Disk::Platters Disk::platters(const Inode& file) {
  Platters out{*file.live, std::vector<Write>(file.pending.size())};
  std::size_t end = file.covered.size();
  for (std::size_t i = file.pending.size(); i-- > 0;) {
    const Inode::Pending& write = file.pending[i];
    out.pending[i] = {write.offset, out.durable.substr(std::min(write.offset, out.durable.size()), write.size), write.truncates};
    out.durable.resize(write.size_before, '\0');
    put_at(out.durable, std::string_view(file.covered).substr(write.covered, end - write.covered), write.offset);
    end = write.covered;
  }
  if (file.durable) out.durable = *file.durable;
  return out;
}

/// As on Unix: the first sync of a new file syncs its folder too.
void Disk::sync(Inode& file) {
  if (file.durable)
    for (Platters found = platters(file); const Write& write : found.pending)
      apply(*file.durable, write, Fate::applied, *random_);
  if (file.durable == *file.live) file.durable.reset();  // all that was lost has been written again
  file.pending.clear();
  file.covered.clear();
  const auto seen = names_.find(file.name);
  if (seen == names_.end() || seen->second.get() != &file) return;  // removed, or a temporary one
  const auto kept = durable_names_.find(file.name);
  if (kept == durable_names_.end() || kept->second != seen->second) durable_names_ = names_;
}

void Disk::lose_pending(Inode& file) {
  Platters found = platters(file);
  for (const Write& write : found.pending)
    apply(found.durable, write, random_->up_to(1) == 0 ? Fate::applied : Fate::dropped, *random_);
  file.durable = std::move(found.durable);
  file.pending.clear();
  file.covered.clear();
}

void Disk::apply(std::string& to, const Write& write, Fate fate, Random& random) {
  if (fate == Fate::dropped) return;
  if (write.truncates) return to.resize(write.offset, '\0');
  if (fate == Fate::applied) return put_at(to, write.bytes, write.offset);
  std::uint64_t at = write.offset;
  const std::uint64_t end = write.offset + write.bytes.size();
  while (at < end) {
    const std::uint64_t next = std::min(end, (at / kSector + 1) * kSector);
    const auto sector = std::string_view(write.bytes).substr(at - write.offset, next - at);
    const std::int64_t draw = random.up_to(2);
    if (to.size() >= next && std::string_view(to).substr(at, next - at) == sector) {
      // Written as it is: a commit's first frame does that to the end of the one before, which must not suffer by it.
    } else if (fate == Fate::garbled && draw == 0) {
      std::string noise(sector.size(), '\0');
      for (char& c : noise) c = static_cast<char>(random.up_to(255));
      put_at(to, noise, at);
    } else if (draw != 1) {
      put_at(to, sector, at);
    }
    at = next;
  }
}

void Disk::cut_power() {
  if (!running_) return;
  ++counts_.power_cuts;
  // Names first: each change of the folder that was not synced has happened or not.
  Names found = names_;
  for (const auto& [name, file] : durable_names_)
    if (!found.contains(name) && random_->up_to(1) == 0) found.emplace(name, file);
  for (auto it = found.begin(); it != found.end();) {
    const auto kept = durable_names_.find(it->first);
    const bool same = kept != durable_names_.end() && kept->second == it->second;
    if (same || random_->up_to(1) == 0) {
      ++it;
    } else if (kept != durable_names_.end()) {
      it->second = kept->second;
      ++it;
    } else {
      it = found.erase(it);
    }
  }
  std::size_t count = 0;
  for (const auto& [name, file] : found) count += file->pending.size();
  std::size_t index = 0;
  for (const auto& [name, file] : found) {
    if (file->pending.empty() && !file->durable) continue;
    Platters there = platters(*file);
    for (const Write& write : there.pending) {
      const Fate fate = fates_(index++, count);
      std::uint64_t* counters[] = {&counts_.applied, &counts_.dropped, &counts_.torn, &counts_.garbled};
      ++*counters[std::to_underlying(fate)];
      apply(there.durable, write, fate, *random_);
    }
    file->live = std::move(there.durable);
    file->durable.reset();
    file->pending.clear();
    file->covered.clear();
  }
  names_ = durable_names_ = std::move(found);
  stop();
}

void Disk::kill() {
  if (!running_) return;
  ++counts_.kills;
  stop();
}

void Disk::stop() {
  running_ = false;
  faults_.clear();
}

/// Locks and shared memory live as long as their processes: the files get bodies that nobody has open. What a failed sync has
/// lost is still seen, as the page cache shows it, until the power is cut.
void Disk::boot() {
  std::map<const Inode*, std::shared_ptr<Inode>> bodies;
  const auto renew = [&](Names& names) {
    for (auto& [name, file] : names) {
      auto& body = bodies[file.get()];
      if (!body) {
        body = std::make_shared<Inode>();
        body->name = name;  // a rename may have been lost
        body->live = file->live;
        body->pending = std::move(file->pending);
        body->covered = std::move(file->covered);
        body->durable = std::move(file->durable);
      }
      file = body;
    }
  };
  renew(names_);
  renew(durable_names_);
  ++life_;
  running_ = true;
}

}  // namespace holdfast::sim
