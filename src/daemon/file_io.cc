#include "daemon/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace expanse::daemon {

base::Result<base::UniqueFd> SystemFileIo::Create(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::FailErrno(errno, "create " + path);
  return fd;
}

base::Status SystemFileIo::Write(int fd, std::string_view data, std::int64_t offset) {
  return base::PwriteFd(fd, data, offset);
}

base::Status SystemFileIo::Sync(int fd) {
  if (::fdatasync(fd) != 0) return base::FailErrno(errno, "fdatasync");
  return {};
}

base::Status SystemFileIo::Truncate(const std::string& path, std::int64_t size) {
  if (::truncate(path.c_str(), size) != 0) return base::FailErrno(errno, "truncate " + path);
  return {};
}

base::Status SystemFileIo::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return base::FailErrno(errno, "rename " + from);
  return {};
}

base::Status SystemFileIo::Remove(const std::string& path) { return base::RemoveFile(path); }

base::Status SystemFileIo::SyncDirectory(const std::string& path) {
  return base::FsyncDirectory(path);
}

base::Status ReplaceFile(FileIo& files, const std::string& directory, std::string_view name,
                         std::string_view data) {
  const std::string path = base::JoinPath(directory, name);
  const std::string temporary = path + ".tmp";
  EXPANSE_RETURN_IF_ERROR(files.Remove(temporary));
  EXPANSE_ASSIGN_OR_RETURN(base::UniqueFd fd, files.Create(temporary));
  EXPANSE_RETURN_IF_ERROR(files.Write(fd.get(), data, 0));
  EXPANSE_RETURN_IF_ERROR(files.Sync(fd.get()));
  EXPANSE_RETURN_IF_ERROR(files.Rename(temporary, path));
  return files.SyncDirectory(directory);
}

}  // namespace expanse::daemon
