/* Texts in the exposition format of Prometheus, as metrics.h makes them, in one. Pure. */
#pragma once
#include "base/text.h"
#include <stddef.h>

/* Adds all samples of the texts, those of a metric together behind its one description. A text
 * consists of lines "# HELP NAME …", each followed by "# TYPE …" and the samples; "" is one. */
void metrics_merge(const char *const *texts, size_t n, struct text *ret);
