#include "lease/machine.h"
#include "base/checksum.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUE_MAX    256
#define SYS_PATH_MAX 512

/* The bytes of a small file; 0 if there is none or we may not read it. */
static size_t read_value(const char *path, char ret[static VALUE_MAX])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const ssize_t n = fd < 0 ? 0 : read(fd, ret, VALUE_MAX);
	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* With its name and its end, so that no two sets of values have the same bytes. */
static bool add_file_value(struct digest *digest, const char *path)
{
	char value[VALUE_MAX];
	const size_t n = read_value(path, value);
	digest_update(digest, path, strlen(path) + 1);
	digest_update(digest, &n, sizeof n);
	digest_update(digest, value, n);
	return n > 0;
}

/* Cards only, and of these the addresses they were made with: what is set up by people or
 * containers comes and goes. */
static int is_card(const struct dirent *entry)
{
	char path[SYS_PATH_MAX], value[VALUE_MAX];
	snprintf(path, sizeof path, "/sys/class/net/%s/device", entry->d_name);
	if (*entry->d_name == '.' || access(path, F_OK))
		return 0;
	snprintf(path, sizeof path, "/sys/class/net/%s/addr_assign_type", entry->d_name);
	return read_value(path, value) && *value == '0';
}

static void add_cards(struct digest *digest)
{
	struct dirent **cards;
	char path[SYS_PATH_MAX];
	const int n = scandir("/sys/class/net", &cards, is_card, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "/sys/class/net/%s/address", cards[i]->d_name);
		add_file_value(digest, path);
		free(cards[i]);
	}
	if (n >= 0)
		free(cards);
}

static void finish_id(struct digest *digest, char ret[static MACHINE_CHARS + 1])
{
	struct sums sums;
	digest_finish(digest, &sums);
	digest_clear(digest);
	for (size_t i = 0; i < MACHINE_CHARS / 2; i++)
		snprintf(ret + 2 * i, 3, "%02x", sums.sha256[i]);
}

void machine_id(char ret[static MACHINE_CHARS + 1])
{
	struct digest digest;
	*ret = 0;
	if (digest_init(&digest, DIGEST_SHA256))
		return;
	add_file_value(&digest, "/etc/machine-id");
	add_file_value(&digest, "/sys/hypervisor/uuid");
	add_cards(&digest);
	finish_id(&digest, ret);
}

void machine_board(char ret[static MACHINE_CHARS + 1])
{
	struct digest digest;
	*ret = 0;
	if (digest_init(&digest, DIGEST_SHA256))
		return;
	bool known = add_file_value(&digest, "/sys/class/dmi/id/product_uuid");
	known |= add_file_value(&digest, "/sys/firmware/qemu_fw_cfg/by_name/etc/vmgenid_guid/raw");
	finish_id(&digest, ret);
	if (!known)
		*ret = 0;
}
