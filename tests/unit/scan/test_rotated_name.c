#include "../check.h"
#include "scan/key/rotated_name.h"

struct row {
	const char *name, *family; /* NULL: it is the name without the suffix */
	const char *suffix;
};

static void check_rows(const struct row *rows, size_t n)
{
	struct family_rules *rules;
	struct problem problem;
	if (!CHECK_INT(family_rules_new(&rules, &problem), 0))
		return;
	for (size_t i = 0; i < n; i++) {
		struct family family;
		struct text text = TEXT(1024);
		const struct row *row = &rows[i];
		family_of(rules, row->name, &family);
		family_add(&text, &family);
		bool ok = CHECK_INT(family.form != FAMILY_PLAIN, row->family != NULL);
		if (!row->family)
			text_add(&text, family.suffix);
		ok = CHECK_STRING(text_string(&text), row->family ? row->family : row->name) && ok;
		const size_t bytes = strlen(row->name);
		const bool ends = !row->family && bytes > 4 &&
				  (strcmp(row->name + bytes - 4, ".tmp") == 0 ||
					  strcmp(row->name + bytes - 4, "ckup") == 0);
		ok = CHECK_INT(family.is_unfinished, ends) && ok;
		ok = CHECK_STRING(family.suffix, row->suffix ? row->suffix : "") && ok;
		if (!ok)
			fprintf(stderr, "\tname %s\n", row->name);
		text_clear(&text);
	}
	family_rules_free(rules);
}

#define CHECK_ROWS(rows) check_rows((rows), sizeof rows / sizeof(*(rows)))

static void test_usual(void)
{
	static const struct row rows[] = {
		/* logrotate: numeric, extension, dateext, dateformat */
		{"app.log.1", "app.log", ""},
		{"app.log.10", "app.log", ""},
		{"app.log.2.gz", "app.log", ".gz"},
		{"syslog.7.xz", "syslog", ".xz"},
		{"app.1.log", "app.log", ""},
		{"app.1.log.gz", "app.log", ".gz"},
		{"app.log-20260101", "app.log", ""},
		{"app.log-20260101.gz", "app.log", ".gz"},
		{"app-20260101.log.bz2", "app.log", ".bz2"},
		{"app.log-2026010113", "app.log", ""},
		{"app.log-1767225600", "app.log", ""},
		{"app.log-20260101-1767225600", "app.log", ""},
		{"app.log.2026-01-01", "app.log", ""},
		{"app.log_2026_01_01.zst", "app.log", ".zst"},
		{"app.log-202601", "app.log", ""},
		/* newsyslog */
		{"maillog.0.bz2", "maillog", ".bz2"},
		{"maillog.20260101T235959.zst", "maillog", ".zst"},
		/* logrotate, of a live log that the writer made anew too early */
		{"app.log-2026010113.backup", "app.log", ""},
		{"app.log-2026010113.backup.gz", "app.log", ".gz"},
		/* log4j, logback */
		{"app.log.2026-01-01-13", "app.log", ""},
		{"app-2026-01-01.log", "app.log", ""},
		{"app-2026-01-01-12.log.gz", "app.log", ".gz"},
		{"app-01-31-2026-1.log.gz", "app.log", ".gz"},
		{"app.log-31012026", "app.log", ""},
		{"app.log-01312026.gz", "app.log", ".gz"},
		{"app.log.31.01.2026", "app.log", ""},
		{"app.log-20112026", "app.log", ""},
		{"app.2026-01-01.0.txt", "app.txt", ""},
		{"app.log.2026-01", "app.log", ""},
		{"app.log.2026-53", "app.log", ""},
		/* rotatelogs, cronolog */
		{"access_log.1767225600", "access_log", ""},
		{"access.2026-01-01-00_00_00.log", "access.log", ""},
		{"access_log.20260101", "access_log", ""},
		/* Python: RotatingFileHandler, TimedRotatingFileHandler */
		{"app.log.3", "app.log", ""},
		{"app.log.2026-01-01", "app.log", ""},
		{"app.log.2026-01-01_13", "app.log", ""},
		{"app.log.2026-01-01_13-05", "app.log", ""},
		{"app.log.2026-01-01_13-05-59.lz4", "app.log", ".lz4"},
		/* others */
		{"server-2026-01-01T13-05-59.123.log", "server.log", ""},
		{"0.log.20260101-130559.gz", "0.log", ".gz"},
		{"api-out__2026-01-01_13-05-59.log", "api-out.log", ""},
		{"web.host.log.INFO.20260101-130559.12345", "web.host.log.INFO", ""},
		{"backup-20260101.tar.gz", "backup.tar", ".gz"},
		{"10.0.0.5.log.1", "10.0.0.5.log", ""},
		{"10.0.0.5.1", "10.0.0.5", ""},
		/* multilog, s6-log, svlogd */
		{"@400000006567c1b41dcd6500.s", "current", ""},
		{"@400000006567c1b41dcd6500.u", "current", ""},
		{"@400000006567c1b41dcd6500.s.gz", "current", ".gz"},
		/* log4j, Zeek, MySQL, journald */
		{"app-1.log", "app.log", ""},
		{"app-12.log.gz", "app.log", ".gz"},
		{"u_ex261127.log", "u_ex.log", ""},
		{"u_ex26112713.log", "u_ex.log", ""},
		{"conn.00:00:00-01:00:00.log.gz", "conn.log", ".gz"},
		{"binlog.000001", "binlog", ""},
		{"mysql-bin.000123", "mysql-bin", ""},
		{"trace.00001.log", "trace.log", ""},
		{"system@0123456789abcdef0123456789abcdef-0000000000000001-00060b1c2d3e4f50.journal",
			"system.journal", ""},
		/* PostgreSQL, MySQL, Serilog, log4net */
		{"postgresql-Thu.log", "postgresql.log", ""},
		{"postgresql.Sun.gz", "postgresql", ".gz"},
		{"error.log-old", "error.log", ""},
		{"Xorg.0.log.old", "Xorg.0.log", ""},
		{"app.old.log", "app.log", ""},
		{"log20261126.txt", "log.txt", ""},
		{"log2026112613.txt", "log.txt", ""},
		{"log20261127_001.txt.gz", "log.txt", ".gz"},
		{"app.log20261126", "app.log", ""},
		/* nothing but a date or a number */
		{"2026-01-01.log", "log.log", ""},
		{"2026-01-01_12.log.gz", "log.log", ".gz"},
		{"20260101", "log", ""},
		{"000001.log", "log.log", ""},
		{"1767225600.log", "log.log", ""},
		/* a wildcard of logrotate that takes what is rotated */
		{"app.log.1.1", "app.log", ""},
		{"app.log.1.gz.1", "app.log", ""},
		{"app.log.1.gz.1.gz", "app.log", ".gz"},
		{"syslog.2.xz.1.gz.3", "syslog", ""},
		{"app.log-20260101.gz-20260102.gz", "app.log", ".gz"},
		{"dump.gz-20260101", "dump.gz", ""},
		{"10.0.0.5.1.gz.1", "10.0.0.5", ""},
		{"app-1.2.3", "app-1.2", ""},
		{"caf\xc3\xa9.log.1", "caf\xc3\xa9.log", ""},
		{"\xff.log.1", "\xff.log", ""},
	};
	CHECK_ROWS(rows);
}

static void test_not_rotated(void)
{
	static const struct row rows[] = {
		{"app.log"},
		{"app.log.gz", NULL, ".gz"},
		{"syslog"},
		{"access_log"},
		{"10.0.0.5"},
		{"10.0.0.5.log"},
		{"10.0.0.5.log.gz", NULL, ".gz"},
		{"app.log.12345"},
		{"app-20261301.log"},
		{"app-20260132.log"},
		{"app.log-20260101.backup"},
		{"app.log.1.gz-2026010113.backup"},
		{"app.log.1-2026010113.backup"},
		{"app.log-20260101-2026010113.backup"},
		{"app.log.gz-2026010113.backup"},
		{".app.log-2026010113.backup"},
		{"-2026010113.backup"},
		{"app.log-202601011x.backup"},
		{"app.log.1.tmp"},
		{".app.log.1"},
		{"old"},
		{"-old"},
		{"app.Old"},
		{"threshold"},
		{"app.log-Mond"},
		{"12345.log"},
		{"00001x.log"},
		{"log20261326.txt"},
		{"log20261126x.txt"},
		{".1"},
		{".gz"},
		{"1"},
		{"app-42"},
		{"app-3"},
		{"app-1234.log"},
		{"-1.log"},
		{"app-1.2.3.4"},
		{"app.0001x"},
		{"@400000006567c1b40000000.s"},
		{"@400000006567c1b400000000.s.1x"},
		{"u_ex2611.log"},
		{""},
	};
	CHECK_ROWS(rows);
}

static void test_moments(void)
{
	static const struct {
		const char *name;
		int64_t moment;
	} rows[] = {
		{"0.log.20260101-130559", 20260101130559},
		{"0.log.20260101-130559.gz", 20260101130559},
		{"server-2026-01-01T13-05-59.123.log.gz", 20260101130559123},
		{"app.log", 0},
		{"20260101130559", 20260101130559},
		{"app.log.1", 0},
		{"app.log.100", 0},
		{"app.log-202601", -202601},
		{"app.log-20260101", -20260101},
		{"app-2026-01-01.log.gz", -20260101},
		{"app.log-20260101.1", -202601011},
		{"app.log.2026-01-01_13-05", -202601011305},
		{"app.log-1767225600", -1767225600},
		{"app.log-20260101-1767225600.gz", -202601011767225600},
		{"web.host.log.INFO.20260101-130559.12345", -26010113055912345},
		{"app.log-20260101T130559-1767225600-1234567", -917672256001234567},
	};
	struct family_rules *rules;
	struct problem problem;
	if (!CHECK_INT(family_rules_new(&rules, &problem), 0))
		return;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct family family;
		family_of(rules, rows[i].name, &family);
		if (!CHECK_INT(family_moment(&family), rows[i].moment))
			fprintf(stderr, "\tname %s\n", rows[i].name);
	}
	family_rules_free(rules);
}

int main(void)
{
	test_moments();
	test_usual();
	test_not_rotated();
	return check_result();
}
