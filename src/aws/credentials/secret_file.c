#include "aws/credentials/secret_file.h"
#include "base/named_file.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <unistd.h>

int secret_file_read(const char *path, struct text *ret)
{
	char buf[4096];
	size_t before = ret->len;
	ssize_t n = 0;
	int fd = named_file_open(path);
	if (fd < 0)
		return fd;
	while (!ret->error && (n = read(fd, buf, sizeof buf)) > 0)
		text_add_bytes(ret, buf, (size_t)n);
	int error = n < 0 ? -errno : ret->error;
	close(fd);
	OPENSSL_cleanse(buf, sizeof buf);
	while (ret->len > before && strchr("\r\n\t ", ret->data[ret->len - 1]))
		ret->data[--ret->len] = 0;
	return !error && ret->len == before ? -EIO : error;
}
