/* Identifies this machine, by values that every user may read, and by values that only root may
 * read. process.c uses it for the rows of sessions, and the marks use it for their file. The only
 * decision here is whether two machines differ. */
#include "lease/machine.h"
#include "base/checksum.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define VALUE_MAX    256
#define SYS_PATH_MAX 512
#define VALUES_MAX   (1U << 20)

/* Reads a small file into ret, without a NUL, and returns its length. 0: there is none, or we may
 * not read it. -1: reading failed. */
static ssize_t read_value(const char *path, char ret[static VALUE_MAX])
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == EACCES || errno == EPERM ? 0 : -1;
	const ssize_t n = read(fd, ret, VALUE_MAX);
	close(fd);
	return n;
}

/* Adds the file's name, length and value, so that different sets of values never have the same
 * bytes. If reading fails, *values gets an error, since it is then unknown whether two machines
 * differ in this file. Returns whether there is a value. */
static bool add_file_value(struct text *values, const char *path)
{
	char value[VALUE_MAX];
	const ssize_t n = read_value(path, value);
	if (n < 0) {
		values->error = -EIO;
		return false;
	}
	text_add_bytes(values, path, strlen(path) + 1);
	text_add_bytes(values, &n, sizeof n);
	text_add_bytes(values, value, (size_t)n);
	return n > 0;
}

/* For scandir(): selects the network cards that have the address they were made with. Interfaces
 * and addresses that people or containers set up are skipped, since they come and go. If reading
 * the origin of a card's address fails, the card is selected. If that file is absent, or we may not
 * read it, the card is skipped. */
static int is_card(const struct dirent *entry)
{
	char device[SYS_PATH_MAX], origin_path[SYS_PATH_MAX], origin[VALUE_MAX];
	snprintf(device, sizeof device, "/sys/class/net/%s/device", entry->d_name);
	if (*entry->d_name == '.' || access(device, F_OK))
		return 0;
	snprintf(origin_path, sizeof origin_path, "/sys/class/net/%s/addr_assign_type",
		entry->d_name);
	const ssize_t n = read_value(origin_path, origin);
	const bool is_permanent = n > 0 && *origin == '0'; /* NET_ADDR_PERM */
	return n < 0 || is_permanent;
}

/* Makes a hash of the values, and frees them. Returns false with the hash "" if that fails. */
static bool hash_values(struct text *values, char ret[static MACHINE_CHARS + 1])
{
	struct sums sums;
	const bool good =
		!values->error && !digest_bytes(DIGEST_SHA256, values->data, values->len, &sums);
	*ret = '\0';
	if (good)
		hex_encode(sums.sha256, MACHINE_CHARS / 2, ret);
	text_clear(values);
	return good;
}

/* Makes process.machine. Returns false if a value that it is made of cannot be read. A machine that
 * has none of these values still gets a hash, which all such machines share. */
static bool hash_machine(char ret[static MACHINE_CHARS + 1])
{
	struct text values = TEXT(VALUES_MAX);
	struct dirent **cards;
	char path[SYS_PATH_MAX];
	add_file_value(&values, "/etc/machine-id");
	add_file_value(&values, "/sys/hypervisor/uuid");
	const int n = scandir("/sys/class/net", &cards, is_card, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "/sys/class/net/%s/address", cards[i]->d_name);
		add_file_value(&values, path);
		free(cards[i]);
	}
	/* As for the files of the other values, it is no error if the folder does not exist or we
	 * may not read it. */
	const bool is_absent = n < 0 && (errno == ENOENT || errno == EACCES);
	if (n >= 0)
		free(cards);
	else if (!is_absent)
		values.error = -EIO;
	return hash_values(&values, ret);
}

/* Makes process.board, which is "" if neither value is known. Returns false if a value cannot be
 * read. */
static bool hash_board(char ret[static MACHINE_CHARS + 1])
{
	struct text values = TEXT(VALUES_MAX);
	bool is_known = add_file_value(&values, "/sys/class/dmi/id/product_uuid");
	is_known |=
		add_file_value(&values, "/sys/firmware/qemu_fw_cfg/by_name/etc/vmgenid_guid/raw");
	const bool good = hash_values(&values, ret);
	if (!is_known)
		*ret = '\0';
	return good;
}

bool machine_hashes(
	char ret_machine[static MACHINE_CHARS + 1], char ret_board[static MACHINE_CHARS + 1])
{
	return hash_machine(ret_machine) && hash_board(ret_board);
}

/* Adds a hash of the address of a network card. If there is no address that we may read, or no more
 * room, nothing is added. Returns false if reading fails. */
static bool add_card(struct known_machine *machine, const char *name)
{
	struct text values = TEXT(VALUES_MAX);
	char path[SYS_PATH_MAX], address[VALUE_MAX], hash[MACHINE_CHARS + 1];
	const size_t used = strlen(machine->cards);
	snprintf(path, sizeof path, "/sys/class/net/%s/address", name);
	const ssize_t n = read_value(path, address);
	if (n <= 0)
		return n == 0;
	text_add_bytes(&values, address, (size_t)n);
	if (!hash_values(&values, hash))
		return false;
	if (used + CARD_CHARS + 1 < sizeof machine->cards)
		snprintf(machine->cards + used, sizeof machine->cards - used, "%.*s ", CARD_CHARS,
			hash);
	return true;
}

/* Adds a hash of the address of each network card. Returns false if reading fails. */
static bool add_cards(struct known_machine *machine)
{
	struct dirent **cards;
	bool good = true;
	const int n = scandir("/sys/class/net", &cards, is_card, alphasort);
	const bool is_scanned = n >= 0 || errno == ENOENT || errno == EACCES;
	for (int i = 0; i < n; i++) {
		good = good && add_card(machine, cards[i]->d_name);
		free(cards[i]);
	}
	if (n >= 0)
		free(cards);
	return good && is_scanned;
}

void machine_id(char ret[static MACHINE_CHARS + 1])
{
	struct text values = TEXT(VALUES_MAX);
	const bool is_known = add_file_value(&values, "/etc/machine-id");
	hash_values(&values, ret);
	if (!is_known)
		*ret = '\0';
}

void machine_self(struct known_machine *ret)
{
	struct text values = TEXT(VALUES_MAX);
	size_t n = sizeof ret->host;
	*ret = (struct known_machine){.id = ""};
	if (uv_os_gethostname(ret->host, &n))
		*ret->host = '\0';
	const bool has_id = add_file_value(&values, "/etc/machine-id");
	add_file_value(&values, "/sys/hypervisor/uuid");
	/* Without /etc/machine-id, or if a value could not be read, the id is left empty: a machine
	 * with an empty id is never taken for a different one. */
	const bool good = hash_values(&values, ret->id) && hash_board(ret->board) && add_cards(ret);
	if (!good || !has_id)
		*ret->id = '\0';
}

/* Whether the lists have a card in common. */
static bool share_a_card(const char *a, const char *b)
{
	for (; strlen(a) > CARD_CHARS; a += CARD_CHARS + 1) {
		char card[CARD_CHARS + 1] = "";
		memcpy(card, a, CARD_CHARS);
		if (strstr(b, card))
			return true;
	}
	return false;
}

bool machine_differs(const struct known_machine *a, const struct known_machine *b)
{
	if (!*a->id || !*b->id)
		return false;
	if (strcmp(a->id, b->id) != 0 || strcmp(a->host, b->host) != 0)
		return true;
	/* A value that is unknown on one side shows no difference. */
	if (*a->board && *b->board && strcmp(a->board, b->board) != 0)
		return true;
	return *a->cards && *b->cards && !share_a_card(a->cards, b->cards);
}
