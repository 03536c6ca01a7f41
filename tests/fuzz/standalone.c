/* A target without libFuzzer: each argument is a file of input, or a folder of such files. */
#include "fuzz.h"
#include <dirent.h>
#include <errno.h>

#define INPUT_MAX_BYTES (1U << 20)

static unsigned files;

static void run_file(const char *path)
{
	static uint8_t buffer[INPUT_MAX_BYTES];
	FILE *file = fopen(path, "rb");
	ENSURE(file);
	size_t n = fread(buffer, 1, sizeof buffer, file);
	ENSURE(!ferror(file) && feof(file));
	fclose(file);
	uint8_t *input = malloc(n); /* exactly as long, so that ASan sees one byte more */
	ENSURE(input || n == 0);
	memcpy(input, buffer, n);
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(input, n);
	free(input);
	files++;
}

static void run(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);
	if (n < 0) {
		ENSURE(errno == ENOTDIR);
		run_file(path);
		return;
	}
	for (int i = 0; i < n; i++) {
		char child[4096];
		ENSURE(snprintf(child, sizeof child, "%s/%s", path, names[i]->d_name) <
			(int)sizeof child);
		if (names[i]->d_name[0] != '.')
			run_file(child);
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	printf("%u inputs\n", files);
	return files == 0;
}
