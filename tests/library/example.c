/* The library in forty lines: upload what the arguments name, and say what became of it.
 *   cc example.c $(pkg-config --cflags --libs s3once) && ./a.out BUCKET PREFIX SOURCE... */
#include <s3once/push.h>
#include <stdio.h>

static void on_event(void *arg, const struct s3once_event *event)
{
	FILE *out = arg;
	switch (event->type) {
	case S3ONCE_EVENT_UPLOADED:
		fprintf(out, "uploaded %s (%llu bytes)\n", event->key,
			(unsigned long long)event->bytes);
		break;
	case S3ONCE_EVENT_FAILED:
	case S3ONCE_EVENT_FATAL:
		fprintf(out, "failed %s: %s\n", event->key, event->text);
		break;
	default:
		break;
	}
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return fprintf(stderr, "usage: example BUCKET PREFIX SOURCE...\n"), 2;
	const struct s3once_options options = {
		.bucket = argv[1],
		.prefix = argv[2],
		.sources = (const char *const *)&argv[3],
		.n_sources = (size_t)(argc - 3),
		.callback = on_event,
		.callback_arg = stdout,
	};
	struct s3once_push *push;
	char why[256];
	if (s3once_push_new(&options, &push, why, sizeof why))
		return fprintf(stderr, "example: %s\n", why), 2;
	enum s3once_exit code = s3once_push_run(push);
	const struct s3once_counts *counts = s3once_push_counts(push);
	printf("%llu of %llu files, s3once %s\n", (unsigned long long)counts->uploaded,
		(unsigned long long)counts->found, s3once_version());
	s3once_push_free(push);
	return (int)code;
}
