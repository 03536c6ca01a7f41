/* Which differences make two machines of what is known of them, and which do not. */
#include "check.h"
#include "lease/machine.h"
#include <string.h>

#define CARD_A "00000000000000aa "
#define CARD_B "00000000000000bb "
#define CARD_C "00000000000000cc "
/* as many as a machine has at most, but for one */
#define MANY_CARDS                                                                                 \
	CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C CARD_C \
		CARD_C

static const struct row {
	bool differ;
	struct known_machine a, b;
} rows[] = {
	{false, {"web", "1", "", ""}, {"web", "1", "", ""}},
	{true, {"web", "1", "", ""}, {"web", "2", "", ""}},
	{true, {"web1", "1", "", ""}, {"web2", "1", "", ""}},
	/* Nothing is known of a container without a machine id, whatever its name and its host are.
	 */
	{false, {"pod-1", "", "b", CARD_A}, {"pod-2", "", "c", CARD_B}},
	{false, {"pod-1", "", "", ""}, {"web", "1", "", ""}},
	/* Only root sees the board. */
	{true, {"web", "1", "b", ""}, {"web", "1", "c", ""}},
	{false, {"web", "1", "b", ""}, {"web", "1", "", ""}},
	{false, {"web", "1", "b", ""}, {"web", "1", "b", ""}},
	{true, {"web", "1", "b", CARD_A}, {"web", "1", "c", CARD_A}},
	/* One card in common is enough, in any place. */
	{true, {"web", "1", "", CARD_A CARD_B}, {"web", "1", "", CARD_C}},
	{false, {"web", "1", "", CARD_A CARD_B}, {"web", "1", "", CARD_C CARD_B}},
	{false, {"web", "1", "", CARD_A}, {"web", "1", "", ""}},
	{true, {"web", "1", "b", CARD_A}, {"web", "1", "b", CARD_B}},
	{true, {"web", "1", "", CARD_A}, {"web", "1", "", CARD_B}},
	{false, {"web", "1", "", MANY_CARDS CARD_A}, {"web", "1", "", MANY_CARDS CARD_B}},
	{false, {"web", "1", "", MANY_CARDS CARD_A}, {"web", "1", "", CARD_B CARD_A}},
	{true, {"web", "1", "", MANY_CARDS CARD_A}, {"web", "1", "", CARD_B}},
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		if (!CHECK(machine_differs(&row->a, &row->b) == row->differ) ||
			!CHECK(machine_differs(&row->b, &row->a) == row->differ))
			fprintf(stderr, "row %zu\n", i);
	}
}

static void test_this_machine(void)
{
	struct known_machine once, again;
	machine_self(&once);
	machine_self(&again);
	CHECK(!machine_differs(&once, &again));
	CHECK_STRING(once.id, again.id);
	CHECK_STRING(once.cards, again.cards);
	CHECK_INT(strlen(once.cards) % (CARD_CHARS + 1), 0);
}

int main(void)
{
	test_rows();
	test_this_machine();
	return check_result();
}
