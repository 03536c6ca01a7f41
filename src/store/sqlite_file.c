/* Opens the SQLite file of a mark store, after checking its place, its owner and its content. The
 * store, the locks and the rows of growing logs use these functions. A file of another program is
 * refused and never written to. */
#include "store/sqlite_file.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "store/state_folder.h"
#include "store/store.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <uv.h>

#define APPLICATION_ID 0x73336f6e /* "s3on" in ASCII */
#define LAYOUT         1
#define NAME_MAX_BYTES 160
#define TO_STRING_(x)  #x
#define TO_STRING(x)   TO_STRING_(x)

/* The path of an SQLite file that was checked: a regular file of ours, not a link, on a local disk,
 * in a folder that only its owner (or root) can write to. */
struct sqlite_path {
	char *real;           /* without symlinks; the caller frees it */
	bool has_other_owner; /* the file of another user, which root may read and not write */
};

static char nowhere[] = STORE_SQLITE_NOWHERE;

/* The types of file systems of the network, and of clusters. FUSE is not here: it may be the
 * network (sshfs) or a local disk (ntfs-3g, encfs), and its type does not say which. */
static const unsigned long remote_types[] = {
	0x6969,     /* NFS */
	0x517b,     /* SMB */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB2 */
	0x564c,     /* NCP */
	0x01021997, /* 9P */
	0x00c36400, /* Ceph */
	0x5346414f, /* OpenAFS */
	0x6b414653, /* kAFS */
	0x73757245, /* Coda */
	0x0bd00bd0, /* Lustre */
	0x01161970, /* GFS2 */
	0x7461636f, /* OCFS2 */
	0x47504653, /* GPFS */
	0x19830326, /* BeeGFS */
	0xaad7aaea, /* PanFS */
};

static const char not_sqlite[] =
	"is not an SQLite file: give another path; if it held marks, move it away, and "
	"the next run compares each file with what S3 holds";

bool sqlite_path_is_remote(unsigned long type)
{
	for (size_t i = 0; i < sizeof remote_types / sizeof *remote_types; i++)
		if (remote_types[i] == type)
			return true;
	return false;
}

/* Sets a sentence about the owner of a file or folder. It has the user id, since the user of the
 * systemd units (DynamicUser=) has a name only while one of them runs. */
static void describe_owner(
	const char *name, const char *what, uid_t uid, struct problem *ret_problem)
{
	const bool is_units =
		strstr(name, "/var/lib/s3once/") || strstr(name, "/var/lib/private/s3once/");
	problem_set(ret_problem, "%s: %s to another user (uid %u): %s", name, what, (unsigned)uid,
		is_units ? "these are the marks of the systemd units, whose user is s3once; root "
			   "reads them with --job NAME, and changes them by systemd-run, as "
			   "docs/audit.md shows"
			 : "run as that user, or use a file of your own; users share "
			   "dynamodb:TABLE, and root can read this file");
}

/* Checks that only the owner and root can write to the folder, and that its disk is local. Others
 * could put a write-ahead log beside the file, or swap the file. */
static int check_folder(int fd, uid_t owner, const char *name, struct problem *ret_problem)
{
	struct stat st;
	struct statfs fs; /* f_type is signed: only its low 32 bits are the type */

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return problem_error(ret_problem, -errno, "%s: %s", name, strerror(errno));
	if (st.st_uid != owner && st.st_uid != 0)
		describe_owner(name, "its folder belongs", st.st_uid, ret_problem);
	else if (st.st_mode & 022)
		problem_set(ret_problem,
			"%s: others can write to its folder (mode %04o): use a folder of your own, "
			"or chmod go-w it",
			name, (unsigned)st.st_mode & 07777);
	else if (sqlite_path_is_remote((unsigned long)fs.f_type & 0xffffffff))
		problem_set(ret_problem,
			"%s: is on a network file system, where SQLite's locks cannot be relied "
			"on: use a local folder, or dynamodb:TABLE",
			name);
	else
		return 0;
	return -EPERM;
}

/* Makes an empty file, with mode 0600 whatever the umask is, unless there is one. 0 or -errno. */
static int make_file(int folder, const char *base)
{
	if (mknodat(folder, base, S_IFREG | 0600, 0) < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchmodat(folder, base, 0600, 0) < 0 ? -errno : 0;
}

/* Checks the file, and makes it first if it is missing and is not only read. It is made by
 * mknodat() and examined by fstatat(), and never opened here: closing a descriptor of our own would
 * drop the POSIX locks of every SQLite connection that this process has on the file. */
static int check_file(int folder, const char *base, bool only_read, uid_t owner, const char *name,
	struct problem *ret_problem)
{
	struct stat st;
	int r = only_read ? 0 : make_file(folder, base);

	if (!r && fstatat(folder, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r && only_read)
		return problem_error(
			ret_problem, r, "%s: %s: correct the path", name, strerror(-r));
	if (r)
		return problem_error(ret_problem, r,
			"%s: cannot be made: %s; give a path in a folder that this user may "
			"write to",
			name, strerror(-r));
	if (S_ISLNK(st.st_mode))
		problem_set(ret_problem, "%s: is a symbolic link: give the file itself", name);
	else if (!S_ISREG(st.st_mode))
		problem_set(ret_problem, "%s: is not a regular file: give another path", name);
	else if (st.st_uid != owner)
		describe_owner(name, "belongs", st.st_uid, ret_problem);
	else if (st.st_mode & 022)
		problem_set(ret_problem, "%s: others can write to it (mode %04o): chmod go-w it",
			name, (unsigned)st.st_mode & 07777);
	else if (st.st_size == 1) /* SQLite would treat such a file as empty and write over it */
		problem_set(ret_problem, "%s: %s", name, not_sqlite);
	else
		return 0;
	return -EPERM;
}

/* Whether the log with this suffix is absent, or a regular file of the owner with no other hard
 * link. */
static bool is_safe_log(int folder, const char *base, const char *suffix, uid_t owner)
{
	char name[NAME_MAX + 1];
	struct stat st;

	if ((size_t)snprintf(name, sizeof name, "%s%s", base, suffix) >= sizeof name)
		return false;
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return S_ISREG(st.st_mode) && st.st_uid == owner && st.st_nlink == 1;
}

static bool has_safe_logs(int folder, const char *base, uid_t owner)
{
	return is_safe_log(folder, base, "-wal", owner) && is_safe_log(folder, base, "-shm", owner);
}

/* Checks the folder, and the file `base` in it, which is made if it is missing, unless only_read.
 * Messages call the file `name`. Fills *ret. 0, or -errno with a sentence. */
static int secure_file(const char *folder, const char *base, bool only_read, const char *name,
	struct sqlite_path *ret, struct problem *ret_problem)
{
	struct stat st;
	uid_t owner = geteuid();
	int r;
	const int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return problem_error(ret_problem, -errno,
			"%s: its folder cannot be opened: %s; correct the path, or make the folder "
			"first",
			name, strerror(errno));
	/* Root may read the file of any user. In every other case the file has to be ours. */
	if (owner == 0 && only_read && fstatat(fd, base, &st, AT_SYMLINK_NOFOLLOW) == 0)
		owner = st.st_uid;
	ret->has_other_owner = owner != geteuid();
	r = check_folder(fd, owner, name, ret_problem);
	if (!r)
		r = check_file(fd, base, only_read, owner, name, ret_problem);
	/* SQLite gives the log and its index to the owner of the file if root runs it. So they must
	 * not be hard links to other files. */
	if (!r && ret->has_other_owner && !has_safe_logs(fd, base, owner))
		r = problem_error(ret_problem, -EPERM,
			"%s: its -wal or -shm file is not a plain file of its owner (uid %u): read "
			"it as that user",
			name, (unsigned)owner);
	close(fd);
	if (r)
		return r;
	/* SQLITE_OPEN_NOFOLLOW needs a path without symlinks. */
	char *real = realpath(folder, NULL);
	if (!real)
		r = -errno;
	else if (asprintf(&ret->real, "%s/%s", strcmp(real, "/") != 0 ? real : "", base) < 0)
		r = -ENOMEM;
	free(real);
	return r ? problem_error(ret_problem, r, "%s: %s", name, strerror(-r)) : 0;
}

/* Makes the folder (0700) and an empty file (0600) where they are missing, whatever the umask, and
 * checks both. Only our own state folder is made, so that a mistyped path does not begin with empty
 * marks. With `only_read` nothing is made, and root may have a file of another user. 0, or -errno
 * with a sentence (not for -ENOMEM). */
static int secure_path(const char *path, bool only_read, const char *name, struct sqlite_path *ret,
	struct problem *ret_problem)
{
	const char *base = path_name(path);
	char own[4096];
	const bool is_own =
		!state_path(base, FOLDER_NOT_MADE, own, sizeof own) && strcmp(path, own) == 0;
	const bool names_folder = !*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0;

	if (names_folder)
		return problem_error(ret_problem, -EINVAL, "%s: names a folder: give a file", name);
	int r = is_own && !only_read ? state_make_folders(path) : 0;
	if (r)
		return problem_error(ret_problem, r,
			"%s: its folder cannot be made: %s; give a path in a folder that this "
			"user may write to, or correct HOME or XDG_STATE_HOME if the path comes "
			"from there",
			name, strerror(-r));
	char *folder = path_folder(path);
	if (!folder)
		return -ENOMEM;
	r = secure_file(folder, base, only_read, name, ret, ret_problem);
	free(folder);
	return r;
}

/* Makes the name of the file for messages: its path, escaped. A long path is cut at its beginning,
 * between two characters of UTF-8. NULL if there is no memory. */
static char *shown_name(const char *path)
{
	/* Escaped, a byte takes at most 4 characters; the rest is for the "...". */
	struct text shown = TEXT(4 * NAME_MAX_BYTES + 4);
	size_t n = strlen(path), skip = n > NAME_MAX_BYTES ? n - NAME_MAX_BYTES : 0;

	if (skip)
		text_add(&shown, "...");
	while (skip && ((unsigned char)path[skip] & 0xc0) == 0x80)
		skip++;
	text_add_escaped(&shown, path + skip, n - skip);
	if (shown.error)
		text_clear(&shown);
	return shown.data;
}

/* Whether this process has a limit on the size of files. SQLite does not always keep the error
 * number of a write that has failed because of it. */
static bool has_size_limit(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

enum outcome sqlite_failure(sqlite3 *db, int rc, const char *name, struct problem *ret_problem)
{
	int e = db ? sqlite3_system_errno(db) : 0;
	const char *because = e ? strerror(e) : sqlite3_errstr(rc);
	const char *what = NULL; /* a constant sentence; sentences with values are set directly */

	/* If there is no room for the index of the log, SQLite returns an I/O error. */
	if ((rc & 0xff) == SQLITE_IOERR && (e == ENOSPC || e == EDQUOT))
		rc = SQLITE_FULL;
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		what = "out of memory";
		break;
	case SQLITE_FULL:
		what = "the file system is full: make room and run again; s3once proven tells "
		       "which files of a push are in S3";
		break;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		problem_set(ret_problem,
			"%s: another process kept it locked for %d s: end that (fuser shows it) "
			"and run again",
			name, SQLITE_LOCKED_MAX_S);
		break;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		what = "cannot be written: check its mode and how its file system is mounted";
		break;
	case SQLITE_NOTADB:
		what = not_sqlite;
		break;
	case SQLITE_CORRUPT:
		problem_set(ret_problem,
			"%s: is damaged (%s): end what uses it, and move it away; if it held "
			"marks, restore them, or the next run compares each file with what S3 "
			"holds",
			name, sqlite3_errstr(rc));
		break;
	case SQLITE_IOERR:
		if (rc == SQLITE_IOERR_FSYNC)
			what = "the last changes cannot be synced to the disk, and a failure of "
			       "power may undo them: check the disk and run again; a push writes "
			       "its marks once more";
		else if (e == EFBIG || (rc == SQLITE_IOERR_WRITE && !e && has_size_limit()))
			what = "the limit of the size of a file is reached: raise it (ulimit -f, "
			       "LimitFSIZE in systemd) and run again";
		else
			problem_set(
				ret_problem, "%s: I/O error (%s): check the disk", name, because);
		break;
	case SQLITE_CANTOPEN:
		/* The file itself was found or made before, so the missing file is the log beside
		 * it. */
		if (e == ENOENT)
			what = "no file can be made in its folder: it is read-only, or was "
			       "removed; make it writable, or give a path elsewhere (local is in "
			       "XDG_STATE_HOME)";
		else
			problem_set(ret_problem,
				"%s: cannot be opened or made (%s): check its folder, rights and file system",
				name, because);
		break;
	default:
		problem_set(ret_problem, "%s: SQLite: %s", name, sqlite3_errstr(rc));
	}
	if (what)
		problem_set(ret_problem, "%s: %s", name, what);
	return (rc & 0xff) == SQLITE_NOMEM ? OUTCOME_LOCAL : OUTCOME_SETUP;
}

int sqlite_error(sqlite3 *db, int rc, const char *name, struct problem *ret_problem)
{
	return sqlite_failure(db, rc, name, ret_problem) == OUTCOME_LOCAL ? -ENOMEM : -EIO;
}

int sqlite_read_number(sqlite3 *db, const char *sql, int *ret)
{
	sqlite3_stmt *statement;
	int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	if (rc)
		return rc;
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_INTERNAL : rc;
}

/* Ends the transaction that a failure has left open, or one that has only read. */
static void roll_back(sqlite3 *db)
{
	if (!sqlite3_get_autocommit(db))
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

/* The ways to open a file. A log is SQLite's write-ahead log, and its index is shared memory in a
 * file beside it (-shm), by which processes use the log at the same time.
 *
 * A file that is only read has to be readable also where no index can be made: the disk is full, or
 * mounted read only, or the folder is. People look for files that they may delete just then. If
 * there is an index already, SHARED works, so a process that is at work is never met below.
 * - Without a log, or with an empty one, the file is all there is. It is read without locks, and
 *   each result is checked afterwards: sqlite_file_is_unchanged().
 * - With a log the index is kept in this process's memory. That is safe only while no other process
 *   uses the file, so SQLite locks them out until it is closed. It takes a writable file. */
enum way { SHARED, UNLOCKED, ALONE };

/* A file that is being opened, and its identity according to its content. */
struct preparation {
	const struct sqlite_path *path;
	bool only_reads;
	sqlite3 *db;      /* the last attempt; its error may still be read */
	struct stat seen; /* for UNLOCKED */
	enum way way;
	int application, layout, tables;
	bool is_ours; /* s3once has made its tables */
	bool is_new;  /* it is blank */
};

/* Reads the identity of the file, in one transaction, since another process may be making the
 * tables. */
static int identify_database(struct preparation *p)
{
	int rc = sqlite3_exec(p->db, "BEGIN", NULL, NULL, NULL);

	if (!rc)
		rc = sqlite_read_number(p->db, "PRAGMA application_id", &p->application);
	if (!rc)
		rc = sqlite_read_number(p->db, "PRAGMA user_version", &p->layout);
	if (!rc)
		rc = sqlite_read_number(p->db, "SELECT count(*) FROM sqlite_schema", &p->tables);
	roll_back(p->db);
	p->is_ours = p->application == APPLICATION_ID;
	p->is_new = !p->application && !p->layout && !p->tables;
	return rc;
}

/* clang-format off */
static const char create_sql[] =
	"BEGIN IMMEDIATE;"
	"CREATE TABLE IF NOT EXISTS items(pk TEXT NOT NULL, sk TEXT NOT NULL, doc BLOB NOT NULL,"
	" PRIMARY KEY(pk, sk)) WITHOUT ROWID;"
	"PRAGMA application_id = " TO_STRING(APPLICATION_ID) ";"
	"PRAGMA user_version = " TO_STRING(LAYOUT) ";"
	"COMMIT";
/* clang-format on */

/* The settings of each connection. For marks, items_new() changes `synchronous` to NORMAL, and
 * sqlite.c decides when to sync. FULL is for the rows of logs that grow. The schema of the file is
 * not trusted to call functions, and damaged pages are noticed. The cache has 16,000 KiB. The log
 * is written back into the file once it has 4,000 pages, which are 16,000 KiB, too. */
static const char settings_sql[] =
	"PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
	"PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 4000";

/* Prepares a file that is ours or blank. Nothing is written to any other file. Returns an SQLite
 * result code. */
static int prepare_file(struct preparation *p)
{
	int rc = identify_database(p);

	const bool is_refused = (!p->is_ours && !p->is_new) || p->layout > LAYOUT;
	if (rc || is_refused)
		return rc; /* open_path() refuses the file, according to *p */
	/* auto_vacuum is set before anything is written: in a file that has a page already, it
	 * takes effect only with the next VACUUM. */
	if (!p->only_reads && p->is_new)
		rc = sqlite3_exec(p->db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL);
	if (!rc && !p->only_reads)
		rc = sqlite3_exec(p->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	if (!rc && !p->only_reads && p->is_new) {
		rc = sqlite3_exec(p->db, create_sql, NULL, NULL, NULL);
		roll_back(p->db); /* after a failure, the transaction may be open */
		/* open_path() needs the identity that the file has now. */
		if (!rc)
			rc = identify_database(p);
	}
	return rc ? rc : sqlite3_exec(p->db, settings_sql, NULL, NULL, NULL);
}

int sqlite_retry_busy(int (*attempt)(void *arg), void *arg)
{
	uint64_t deadline = clock_boot_ns() + SQLITE_LOCKED_MAX_S * NS_PER_S;
	int rc = attempt(arg);

	/* Each pause has a random length, so that waiting processes do not all try at once. */
	for (; (rc & 0xff) == SQLITE_BUSY && clock_boot_ns() < deadline; rc = attempt(arg))
		uv_sleep(1 + (unsigned)random_below(10));
	return rc;
}

/* Whether the file has a log with content. */
static bool has_log(const char *path)
{
	char log[PATH_MAX + 8];
	struct stat st;

	snprintf(log, sizeof log, "%s-wal", path);
	return stat(log, &st) == 0 ? st.st_size > 0 : errno != ENOENT;
}

/* Whether the file has no log and is the same file as when stat() returned `seen`, with the same
 * size and modification time. If so, no process has written to it since: a writer makes a log, and
 * changes the file before it removes the log. */
static bool is_as_seen(const char *path, const struct stat *seen)
{
	struct stat now;

	return !has_log(path) && stat(path, &now) == 0 && now.st_dev == seen->st_dev &&
	       now.st_ino == seen->st_ino && now.st_size == seen->st_size &&
	       now.st_mtim.tv_sec == seen->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == seen->st_mtim.tv_nsec;
}

bool sqlite_file_is_unchanged(const struct sqlite_file *file)
{
	return !file->is_unlocked || is_as_seen(sqlite3_db_filename(file->db, "main"), &file->seen);
}

/* Opens the file without locks, and notes its state before that in p->seen. */
static int open_unlocked(struct preparation *p, int flags)
{
	const char *path = p->path->real;
	struct text uri = TEXT(4 * PATH_MAX);
	int rc = SQLITE_CANTOPEN;

	text_add(&uri, "file:");
	uri_encode_path(&uri, path, strlen(path));
	text_add(&uri, "?immutable=1");
	if (!uri.error && stat(path, &p->seen) == 0)
		rc = sqlite3_open_v2(text_string(&uri), &p->db, flags | SQLITE_OPEN_URI, NULL);
	text_clear(&uri);
	return rc;
}

/* Closes the file if an earlier attempt has opened it. Then opens it in this way, and prepares it.
 * Returns an SQLite result code. */
static int open_in_way(struct preparation *p, enum way way)
{
	const char *path = p->path->real;
	/* The file of another user is opened read-only. SQLite may still have to create its log to
	 * read it. That is safe: SQLite run by root gives the log to the owner of the file. */
	const bool is_read_only = p->path->has_other_owner || way == UNLOCKED;
	const int flags = (is_read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) |
			  SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
			  SQLITE_OPEN_EXRESCODE;

	sqlite3_close(p->db);
	p->db = NULL;
	p->way = way;
	int rc = way == UNLOCKED ? open_unlocked(p, flags)
				 : sqlite3_open_v2(path, &p->db, flags, NULL);
	if (!rc && way == ALONE)
		rc = sqlite3_exec(p->db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
	if (!rc)
		rc = prepare_file(p);
	if (way == UNLOCKED && !is_as_seen(path, &p->seen))
		rc = SQLITE_BUSY; /* a process has begun to write to it */
	return rc;
}

/* Opens and prepares the file in the first way that there is. Returns an SQLite result code. */
static int open_file(void *arg)
{
	struct preparation *p = arg;
	const int rc = open_in_way(p, SHARED), primary = rc & 0xff;

	const bool may_lack_index = primary == SQLITE_CANTOPEN || primary == SQLITE_FULL ||
				    primary == SQLITE_IOERR || primary == SQLITE_READONLY;
	if (!p->only_reads || !may_lack_index)
		return rc;
	if (!has_log(p->path->real))
		return open_in_way(p, UNLOCKED);
	return sqlite3_db_readonly(p->db, "main") == 0 ? open_in_way(p, ALONE) : rc;
}

/* Refuses a file of another program or of a newer s3once. Returns 0, or -EBADMSG with a sentence.
 */
static int check_identity(
	const struct preparation *file, const char *name, struct problem *ret_problem)
{
	if (!file->is_ours)
		return problem_error(ret_problem, -EBADMSG,
			"%s: is an SQLite file of another program: give another path", name);
	if (file->layout > LAYOUT)
		return problem_error(ret_problem, -EBADMSG,
			"%s: was made by a newer s3once (layout %d, this knows %d): use that one",
			name, file->layout, LAYOUT);
	return 0;
}

/* Opens a file that was checked, and sets the members of *ret but its name. */
static int open_path(const struct sqlite_path *path, bool only_read, const char *name,
	struct sqlite_file *ret, struct problem *ret_problem)
{
	struct preparation file = {.path = path, .only_reads = only_read};
	int rc = sqlite_retry_busy(open_file, &file);

	/* If this process may not write to the file, SQLite opens it read only, without an error.
	 * That is an error here, unless it is only read. A file of another program or of a newer
	 * s3once is refused by check_identity() instead, with a more precise sentence. */
	const bool is_usable = file.is_ours && file.layout <= LAYOUT;
	const bool is_read_only = !rc && sqlite3_db_readonly(file.db, "main") == 1;
	if (is_read_only && is_usable && !only_read)
		rc = SQLITE_READONLY;
	if (!rc && only_read && file.is_new) {
		/* It is read as an empty store. */
		sqlite3_close(file.db);
		return open_path(
			&(struct sqlite_path){.real = nowhere}, false, name, ret, ret_problem);
	}
	const int r = rc ? sqlite_error(file.db, rc, name, ret_problem)
			 : check_identity(&file, name, ret_problem);
	if (r)
		sqlite3_close(file.db);
	else
		*ret = (struct sqlite_file){
			.db = file.db, .is_unlocked = file.way == UNLOCKED, .seen = file.seen};
	return r;
}

int sqlite_file_open(
	const char *path, bool only_read, struct sqlite_file *ret, struct problem *ret_problem)
{
	char *name = shown_name(path);
	struct sqlite_path safe = {0};
	int r = name ? 0 : -ENOMEM;

	const bool is_nowhere = strcmp(path, STORE_SQLITE_NOWHERE) == 0;
	if (!r && !is_nowhere)
		r = secure_path(path, only_read, name, &safe, ret_problem);
	if (!r)
		r = open_path(is_nowhere ? &(struct sqlite_path){.real = nowhere} : &safe,
			only_read, name, ret, ret_problem);
	if (r == -ENOMEM)
		problem_set(ret_problem, "out of memory");
	free(safe.real);
	if (r)
		free(name);
	else
		ret->name = name;
	return r;
}
