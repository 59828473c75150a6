/* Room, points and the best rows of one pod template: what numpy computes, row by row.
 *
 * Every result equals numpy's to the bit (tests/engine/test_kernel.py): the same doubles, divided and rounded in
 * the same order, no contraction (-ffp-contract=off), no reassociation. Amounts that come here are below 2^46
 * where they are divided; the caller sees to it (plimsoll/engine/kernel/points.py).
 *
 * plimsoll/engine/kernel/ writes the structures; EDITION changes with them.
 */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EDITION 4
#define FEASIBLE 32767

/* Wider vectors where the processor has them; they compute the same. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

typedef struct {
    const int64_t *allocatable, *requested;
    int64_t least, code, hopeless;
} wanted;

typedef struct {
    int64_t count, position;
    int64_t *codes;
    const int16_t *node_failed;
    int16_t *failed;
    wanted resources[];
} room;

typedef struct {
    const int64_t *allocatable, *taken;
    int64_t amount, weight;
} scored;

typedef struct {
    const int16_t *failed;
    int64_t best_count, highest;
    int64_t *totals, *best;
    const int64_t *base;
    int64_t base_all;
    int64_t count, is_least, weights, weight, balance_weight;
    scored balanced[2];
    int64_t usage_weights, usage_weight;
    scored usage[2];
    scored resources[];
} points;

/* All fields are words of 64 bits: the caller writes them into an array of integers. */
_Static_assert(sizeof(void *) == 8, "addresses are words of 64 bits");

int64_t plimsoll_kernel_edition(void) { return EDITION; }

/* -- room ------------------------------------------------------------------------------------------ */

static inline int64_t free_of(int64_t allocatable, int64_t requested) {
    return (int64_t)((uint64_t)allocatable - (uint64_t)requested); /* wraps around, as numpy's */
}

static inline int64_t sum_of(int64_t one, int64_t other) { return (int64_t)((uint64_t)one + (uint64_t)other); }

/* The codes of all rows; whether some row is short of something. */
WIDE int64_t plimsoll_room_all(const room *self, int64_t nodes) {
    int64_t any = 0;
    int64_t *restrict codes = self->codes;
    memset(codes, 0, (size_t)nodes * sizeof *codes);
    for (int64_t each = 0; each < self->count; each++) {
        const wanted *resource = &self->resources[each];
        const int64_t *restrict allocatable = resource->allocatable;
        const int64_t *restrict requested = resource->requested;
        const int64_t least = resource->least, code = resource->code, hopeless = resource->hopeless;
        int64_t are_short = 0;
        for (int64_t row = 0; row < nodes; row++)
            are_short |= free_of(allocatable[row], requested[row]) < least;
        if (!are_short)
            continue;
        any = 1;
        for (int64_t row = 0; row < nodes; row++)
            if (free_of(allocatable[row], requested[row]) < least)
                codes[row] |= code | (least > allocatable[row] ? hopeless : 0);
    }
    return any;
}

/* Codes and verdicts of some rows: bit 0, some row is short; bit 1, some verdict is another one. */
int64_t plimsoll_room_rows(const room *self, const int64_t *rows, int64_t count) {
    int64_t told = 0;
    for (int64_t at = 0; at < count; at++) {
        const int64_t row = rows[at];
        int64_t codes = 0;
        for (int64_t each = 0; each < self->count; each++) {
            const wanted *resource = &self->resources[each];
            const int64_t allocatable = resource->allocatable[row];
            if (free_of(allocatable, resource->requested[row]) < resource->least)
                codes |= resource->code | (resource->least > allocatable ? resource->hopeless : 0);
        }
        int16_t failed = self->node_failed ? self->node_failed[row] : FEASIBLE;
        if (codes) {
            told |= 1;
            if (failed > self->position)
                failed = (int16_t)self->position;
        }
        self->codes[row] = codes;
        if (self->failed[row] != failed)
            told |= 2;
        self->failed[row] = failed;
    }
    return told;
}

/* -- victims --------------------------------------------------------------------------------------- */

#define MOST_WANTED 16
#define PRIORITY_OFFSET ((int64_t)1 << 31)

typedef struct {
    const int64_t *allocatable, *requested;
    int64_t axis, least, code, hopeless;
} wanted_back;

/* Arrays of places have the place as their slow axis, and the row as the next. */
typedef struct {
    int64_t priority, places, capacity, resources;
    const int64_t *priorities;
    const double *starts;
    const int64_t *requests;
    int64_t nodes, none_lower, filters, position;
    int64_t *kinds;
    uint8_t *victims;
    int64_t *violations, *highest, *sums, *counts;
    double *earliest;
    int64_t count;
    wanted_back wanted[];
} search;

/* The victims on each of the rows if no budget protects any, and their costs: toolkit/scheduling/victims.py. */
void plimsoll_victims(const search *self, const int64_t *rows, int64_t count) {
    for (int64_t at = 0; at < count; at++) {
        const int64_t row = rows[at];
        int64_t left[MOST_WANTED], any = 0, code = 0;
        for (int64_t each = 0; each < self->count; each++)
            left[each] = free_of(self->wanted[each].allocatable[row], self->wanted[each].requested[row]);
        for (int64_t place = 0; place < self->places; place++) {
            const int64_t pod = place * self->capacity + row;
            if (self->priorities[pod] >= self->priority)
                continue;
            any = 1;
            for (int64_t each = 0; each < self->count; each++)
                left[each] = sum_of(left[each], self->requests[pod * self->resources + self->wanted[each].axis]);
        }
        for (int64_t each = 0; each < self->count; each++) {
            const wanted_back *one = &self->wanted[each];
            if (left[each] < one->least)
                code |= one->code | (one->least > one->allocatable[row] ? one->hopeless : 0);
        }
        self->kinds[row] = !any ? self->none_lower : code ? code * self->filters + self->position : 0;
        if (!any || code)
            continue;
        int64_t highest = -PRIORITY_OFFSET, sum = 0, victims = 0;
        double earliest = (double)INFINITY;
        for (int64_t place = 0; place < self->places; place++) {
            const int64_t pod = place * self->capacity + row, priority = self->priorities[pod];
            const int64_t *amounts = self->requests + pod * self->resources;
            int64_t leaves = 0;
            if (priority < self->priority)
                for (int64_t each = 0; each < self->count; each++)
                    leaves |= free_of(left[each], amounts[self->wanted[each].axis]) < self->wanted[each].least;
            self->victims[place * self->nodes + row] = (uint8_t)leaves;
            if (priority >= self->priority)
                continue;
            if (!leaves) {
                for (int64_t each = 0; each < self->count; each++)
                    left[each] = free_of(left[each], amounts[self->wanted[each].axis]);
                continue;
            }
            victims++;
            sum = sum_of(sum, priority + PRIORITY_OFFSET);
            if (priority > highest) {
                highest = priority;
                earliest = (double)INFINITY;
            }
            if (priority == highest && self->starts[pod] < earliest)
                earliest = self->starts[pod];
        }
        self->violations[row] = 0;
        self->highest[row] = highest;
        self->sums[row] = sum;
        self->counts[row] = victims;
        self->earliest[row] = -earliest;
    }
}

/* -- points ---------------------------------------------------------------------------------------- */

/* An integer in 0..2^52 - 1 as a double, in operations of which vectors are made. */
static inline double as_double(int64_t value) {
    const uint64_t bits = (uint64_t)value | 0x4330000000000000u;
    double result;
    memcpy(&result, &bits, sizeof result);
    return result - 4503599627370496.0;
}


/* 0..100: how much of a resource is left, or used, with the pod. */
static inline int32_t allocation_of(int64_t allocatable, int64_t taken, int64_t amount, int64_t is_least) {
    int64_t share;
    if (is_least) {
        share = free_of(free_of(allocatable, taken), amount);
        share = share < 0 ? 0 : share;
    } else {
        share = sum_of(taken, amount);
        share = share < allocatable ? share : allocatable;
    }
    return (int32_t)(as_double(share) * 100.0 / as_double(allocatable));
}

/* What is taken of a resource, at most all. */
static inline double fraction_of(int64_t allocatable, int64_t taken) {
    return as_double(taken < allocatable ? taken : allocatable) / as_double(allocatable);
}

static inline int32_t balance_of(double one, double other) {
    double deviation = one - other;
    deviation = (deviation < 0 ? -deviation : deviation) * 0.5;
    return (int32_t)((1.0 - deviation) * 100.0);
}

static inline int32_t gain_of(const scored *restrict one, const scored *restrict other, int64_t row) {
    const int64_t first = one->allocatable[row], second = other->allocatable[row];
    const int64_t taken = one->taken[row], also = other->taken[row];
    const int32_t without = balance_of(fraction_of(first, taken), fraction_of(second, also));
    const int32_t with = balance_of(
        fraction_of(first, sum_of(taken, one->amount)), fraction_of(second, sum_of(also, other->amount)));
    return (150 + with - without) >> 1;
}

/* 0..100: how much is left of cpu and memory besides what pods use. */
static inline int64_t left_of(const scored *restrict one, const scored *restrict other, int64_t weights, int64_t row) {
    return (one->weight * allocation_of(one->allocatable[row], one->taken[row], one->amount, 1)
            + other->weight * allocation_of(other->allocatable[row], other->taken[row], other->amount, 1)) / weights;
}

static inline int64_t points_of(const points *self, int64_t row) {
    int64_t total = self->base ? self->base[row] : self->base_all;
    if (self->weights) {
        int64_t sum = 0;
        for (int64_t each = 0; each < self->count; each++) {
            const scored *of = &self->resources[each];
            sum += of->weight * allocation_of(of->allocatable[row], of->taken[row], of->amount, self->is_least);
        }
        total += self->weight * (sum / self->weights);
    }
    if (self->balance_weight)
        total += self->balance_weight * gain_of(&self->balanced[0], &self->balanced[1], row);
    if (self->usage_weights)
        total += self->usage_weight * left_of(&self->usage[0], &self->usage[1], self->usage_weights, row);
    return total;
}

/* The totals of some rows. */
void plimsoll_points_rows(const points *self, const int64_t *rows, int64_t count) {
    for (int64_t at = 0; at < count; at++)
        self->totals[rows[at]] = points_of(self, rows[at]);
}

/* The totals of all rows. */
WIDE void plimsoll_points_all(const points *self, int64_t nodes) {
    int64_t *restrict totals = self->totals;
    const int64_t weight = self->weight, balance_weight = self->balance_weight;
    if (self->base)
        memcpy(totals, self->base, (size_t)nodes * sizeof *totals);
    else
        for (int64_t row = 0; row < nodes; row++)
            totals[row] = self->base_all;
    if (self->weights == 2 && self->count == 2 && self->is_least && self->resources[0].weight == 1) {
        const int64_t *restrict first = self->resources[0].allocatable, *restrict second = self->resources[1].allocatable;
        const int64_t *restrict taken = self->resources[0].taken, *restrict also = self->resources[1].taken;
        const int64_t amount = self->resources[0].amount, other = self->resources[1].amount;
        for (int64_t row = 0; row < nodes; row++) {
            const int32_t sum = allocation_of(first[row], taken[row], amount, 1)
                                + allocation_of(second[row], also[row], other, 1);
            totals[row] += weight * (sum >> 1);
        }
    } else if (self->weights) {
        for (int64_t row = 0; row < nodes; row++) {
            int64_t sum = 0;
            for (int64_t each = 0; each < self->count; each++) {
                const scored *of = &self->resources[each];
                sum += of->weight * allocation_of(of->allocatable[row], of->taken[row], of->amount, self->is_least);
            }
            totals[row] += weight * (sum / self->weights);
        }
    }
    if (balance_weight) {
        const int64_t *restrict first = self->balanced[0].allocatable, *restrict second = self->balanced[1].allocatable;
        const int64_t *restrict taken = self->balanced[0].taken, *restrict also = self->balanced[1].taken;
        const int64_t amount = self->balanced[0].amount, other = self->balanced[1].amount;
        for (int64_t row = 0; row < nodes; row++) {
            const int32_t without = balance_of(fraction_of(first[row], taken[row]), fraction_of(second[row], also[row]));
            const int32_t with = balance_of(fraction_of(first[row], sum_of(taken[row], amount)),
                                            fraction_of(second[row], sum_of(also[row], other)));
            totals[row] += balance_weight * ((150 + with - without) >> 1);
        }
    }
    if (self->usage_weights) {
        const scored *const one = &self->usage[0], *const other = &self->usage[1];
        const scored *const only = !other->weight ? one : !one->weight ? other : 0;
        if (only) {
            const int64_t *restrict allocatable = only->allocatable, *restrict used = only->taken;
            const int64_t amount = only->amount, factor = self->usage_weight;
            for (int64_t row = 0; row < nodes; row++)
                totals[row] += factor * allocation_of(allocatable[row], used[row], amount, 1);
        } else
            for (int64_t row = 0; row < nodes; row++)
                totals[row] += self->usage_weight * left_of(one, other, self->usage_weights, row);
    }
}

/* -- the best rows --------------------------------------------------------------------------------- */

/* Finds the feasible rows with the highest total, ascending; how many there are. */
WIDE int64_t plimsoll_best_all(points *self, int64_t nodes) {
    const int64_t *restrict totals = self->totals;
    const int16_t *restrict failed = self->failed;
    int64_t *restrict best = self->best;
    int64_t highest = INT64_MIN, count = 0;
    for (int64_t row = 0; row < nodes; row++) {
        const int64_t total = failed[row] == FEASIBLE ? totals[row] : INT64_MIN;
        highest = total > highest ? total : highest;
    }
    for (int64_t row = 0; row < nodes; row++)
        if (totals[row] == highest && failed[row] == FEASIBLE)
            best[count++] = row;
    self->best_count = count;
    self->highest = highest;
    return count;
}

/* Looks again at rows that changed; 0 when none of the best is left: then look at all. */
int64_t plimsoll_best_rows(points *self, const int64_t *rows, int64_t changed) {
    int64_t *best = self->best;
    int64_t count = self->best_count, highest = self->highest;
    for (int64_t at = 0; at < changed; at++) {
        const int64_t row = rows[at], total = self->totals[row];
        int64_t low = 0, high = count;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (best[middle] < row)
                low = middle + 1;
            else
                high = middle;
        }
        const int is_kept = low < count && best[low] == row;
        if (self->failed[row] != FEASIBLE || total < highest) {
            if (is_kept) {
                count--;
                memmove(best + low, best + low + 1, (size_t)(count - low) * sizeof *best);
            }
        } else if (total > highest) {
            highest = total;
            best[0] = row;
            count = 1;
        } else if (!is_kept) {
            memmove(best + low + 1, best + low, (size_t)(count - low) * sizeof *best);
            best[low] = row;
            count++;
        }
    }
    self->best_count = count;
    self->highest = highest;
    return count;
}

/* -- the best rows by class ------------------------------------------------------------------------ */

#define MOST_CLASSES 64

/* Nodes of one class have equal values on all axes; a value below 0 counts as the last one. The axes make a
 * grid of cells, and a class gets a number when the first node with its cell is seen. */
typedef struct {
    const int64_t *values;
    int64_t size, stride;
} axis;

/* Rows are summarized in blocks; arrays by block and class have the block as their slow axis. */
typedef struct {
    const int16_t *failed;
    const int64_t *totals;
    int64_t nodes, shift, blocks, classes;
    int64_t *best;
    int32_t *ties, *feasible;
    int64_t *feasible_of_all;
    const int64_t *points;
    int64_t *batches, batch, highest;
    int16_t *numbers; /* by cell; below 0: not seen */
    int64_t *cells;   /* by class */
    int64_t known, axes;
    axis of[];
} classed;

/* The cell of a row; -1 where a value does not lie on its axis. */
static inline int64_t cell_of(const classed *self, int64_t row) {
    int64_t found = 0;
    for (int64_t each = 0; each < self->axes; each++) {
        const axis *const one = &self->of[each];
        const int64_t value = one->values[row];
        if (value >= one->size)
            return -1;
        found += (value < 0 ? one->size - 1 : value) * one->stride;
    }
    return found;
}

/* The class of a row; -1 where it has no cell, or there are more classes than there is room for. */
static inline int64_t class_of(classed *self, int64_t row) {
    const int64_t cell = cell_of(self, row);
    if (cell < 0)
        return -1;
    if (self->numbers[cell] < 0) {
        if (self->known == self->classes)
            return -1;
        self->cells[self->known] = cell;
        self->numbers[cell] = (int16_t)self->known++;
    }
    return self->numbers[cell];
}

/* Summarizes a block: of each class the best total, the rows that have it, and all feasible rows. 1 if one has no class. */
static int64_t summarize(classed *self, int64_t block) {
    const int64_t classes = self->classes, first = block << self->shift;
    const int64_t after = first + ((int64_t)1 << self->shift), end = after < self->nodes ? after : self->nodes;
    int64_t *best = self->best + block * classes;
    int32_t *ties = self->ties + block * classes, *feasible = self->feasible + block * classes;
    for (int64_t each = 0; each < classes; each++) {
        self->feasible_of_all[each] -= feasible[each];
        best[each] = INT64_MIN;
        ties[each] = feasible[each] = 0;
    }
    for (int64_t row = first; row < end; row++) {
        if (self->failed[row] != FEASIBLE)
            continue;
        const int64_t of = class_of(self, row), total = self->totals[row];
        if (of < 0)
            return 1;
        feasible[of]++;
        if (total > best[of]) {
            best[of] = total;
            ties[of] = 1;
        } else
            ties[of] += total == best[of];
    }
    for (int64_t each = 0; each < classes; each++)
        self->feasible_of_all[each] += feasible[each];
    return 0;
}

/* Summarizes all blocks; 1 if a row has no class. */
int64_t plimsoll_classes_all(classed *self) {
    memset(self->feasible, 0, (size_t)(self->classes * self->blocks) * sizeof *self->feasible);
    memset(self->feasible_of_all, 0, (size_t)self->classes * sizeof *self->feasible_of_all);
    for (int64_t block = 0; block < self->blocks; block++)
        if (summarize(self, block))
            return 1;
    return 0;
}

/* Summarizes the blocks of rows that changed, each once; 1 if a row has no class. */
int64_t plimsoll_classes_rows(classed *self, const int64_t *rows, int64_t changed) {
    self->batch++;
    for (int64_t at = 0; at < changed; at++) {
        const int64_t block = rows[at] >> self->shift;
        if (self->batches[block] == self->batch)
            continue;
        self->batches[block] = self->batch;
        if (summarize(self, block))
            return 1;
    }
    return 0;
}

/* Finds the highest sum of a row's total and its class's points; how many rows have it. */
WIDE int64_t plimsoll_classes_best(classed *self) {
    const int64_t classes = self->classes, known = self->known;
    int64_t most[MOST_CLASSES], highest = INT64_MIN, count = 0;
    for (int64_t each = 0; each < known; each++)
        most[each] = INT64_MIN;
    for (int64_t block = 0; block < self->blocks; block++) {
        const int64_t *restrict best = self->best + block * classes;
        for (int64_t each = 0; each < known; each++)
            most[each] = best[each] > most[each] ? best[each] : most[each];
    }
    for (int64_t each = 0; each < known; each++)
        if (self->feasible_of_all[each] && most[each] + self->points[each] > highest)
            highest = most[each] + self->points[each];
    for (int64_t each = 0; each < known; each++) {
        if (!self->feasible_of_all[each] || most[each] + self->points[each] != highest)
            continue;
        for (int64_t block = 0; block < self->blocks; block++)
            if (self->best[block * classes + each] == most[each])
                count += self->ties[block * classes + each];
    }
    self->highest = highest;
    return count;
}

/* The row at a position among those, ascending. */
int64_t plimsoll_classes_row(const classed *self, int64_t position) {
    for (int64_t block = 0; block < self->blocks; block++) {
        int64_t here = 0;
        for (int64_t each = 0; each < self->known; each++) {
            const int64_t at = block * self->classes + each;
            if (self->feasible[at] && self->best[at] + self->points[each] == self->highest)
                here += self->ties[at];
        }
        if (position >= here) {
            position -= here;
            continue;
        }
        for (int64_t row = block << self->shift; row < self->nodes; row++)
            if (self->failed[row] == FEASIBLE
                && self->totals[row] + self->points[self->numbers[cell_of(self, row)]] == self->highest && !position--)
                return row;
    }
    return -1;
}
