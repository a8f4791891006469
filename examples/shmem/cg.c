// Conjugate gradients with a sparse random matrix, symmetric and positive definite. The PEs form a grid of R x C. PE (r, c) has block (r,
// c) of the matrix, whose rows are divided into R parts and columns into C parts, and part c of the vectors. A product is summed along the
// grid's row (a team). In each column the one PE that has the column's part of the product puts it to the others, with a signal. So a PE
// communicates only with some PEs of its row and its column. Each PE then solves the whole system serially and compares its part. oshrun -n
// 4 cg [rows] [iterations]
#include <math.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { EACH = 5 };  // pairs of elements per row, besides the diagonal

struct block {  // part of the matrix: rows first … first + rows - 1, and in each the block's columns
    int rows;
    int* begin;
    int* column;  // column of each element, counted within the block
    double* value;
};

static unsigned long mix(unsigned long z) {
    z = (z + 0x9e3779b97f4a7c15ul) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 29)) * 0x94d049bb133111ebul;
    return z ^ (z >> 31);
}

static double right_side(int row) { return 1 + (double)(mix((unsigned long)row + 7777777) % 1000) * 1e-3; }

// Makes a block. Each k gives the elements (i, j) and (j, i); the diagonal is larger than the rest of its row.
static void make_block(struct block* b, int n, int first_row, int rows, int first_column, int columns) {
    b->rows = rows;
    b->begin = calloc((size_t)rows + 2, sizeof *b->begin);
    double* diagonal = calloc((size_t)n, sizeof *diagonal);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++)
            for (int k = 0; k <= EACH; k++) {
                const unsigned long random = mix((unsigned long)i * 64 + (unsigned long)k);
                const int j = k == EACH ? i : (int)(random % (unsigned long)n);  // the diagonal is added last
                if ((k < EACH) == (i == j)) continue;
                const double value = 0.1 + (double)(random >> 40) * 0x1p-24;
                if (pass == 0 && i != j) diagonal[i] += value, diagonal[j] += value;
                for (int way = 0; way < (i == j ? 1 : 2); way++) {
                    const int row = (way ? j : i) - first_row, column = (way ? i : j) - first_column;
                    if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
                    if (pass == 0) {
                        b->begin[row + 2]++;
                    } else {
                        const int at = b->begin[row + 1]++;
                        b->column[at] = column;
                        b->value[at] = i == j ? diagonal[i] + 0.5 : -value;
                    }
                }
            }
        if (pass == 1) break;
        for (int row = 0; row < rows; row++) b->begin[row + 2] += b->begin[row + 1];
        b->column = malloc(sizeof *b->column * ((size_t)b->begin[rows + 1] + 1));
        b->value = malloc(sizeof *b->value * ((size_t)b->begin[rows + 1] + 1));
    }
    free(diagonal);
}

static void free_block(struct block* b) {
    free(b->begin);
    free(b->column);
    free(b->value);
}

static void multiply(const struct block* b, const double* vector, double* product) {
    for (int row = 0; row < b->rows; row++) {
        product[row] = 0;
        for (int k = b->begin[row]; k < b->begin[row + 1]; k++) product[row] += b->value[k] * vector[b->column[k]];
    }
}

static double dot(const double* a, const double* b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

// This PE's place in the grid of PEs, and its part of the matrix and the vectors.
struct part {
    struct block matrix;
    int columns;       // length of this PE's part of the vectors
    int first, step;   // PEs of the same column of the grid: first, first + step, …
    int offset;        // start of its vector part among the block's rows; negative: another PE of the column has it
    shmem_team_t row;  // PEs of the same row of the grid
    // The following pointers are to symmetric memory.
    double *sum, *rows;   // this PE's addend of a product's rows; the summed rows
    double* products[2];  // this PE's part of the last two products; slower PEs may still read the older one
    uint64_t* products_came;
    double* scalars;
};

static const double* multiply_together(const struct part* part, const double* vector, uint64_t number) {
    double* product = part->products[number % 2];
    multiply(&part->matrix, vector, part->sum);
    shmem_double_sum_reduce(part->row, part->rows, part->sum, (size_t)part->matrix.rows);
    if (part->offset >= 0)
        for (int pe = part->first; pe < shmem_n_pes(); pe += part->step)
            shmem_double_put_signal(product, part->rows + part->offset, (size_t)part->columns, part->products_came, number,
                                    SHMEM_SIGNAL_SET, pe);
    shmem_signal_wait_until(part->products_came, SHMEM_CMP_GE, number);
    return product;
}

static double dot_together(const struct part* part, const double* a, const double* b) {
    part->scalars[0] = dot(a, b, part->columns);
    shmem_double_sum_reduce(part->row, &part->scalars[1], &part->scalars[0], 1);
    return part->scalars[1];
}

// Computes the solution x; `part` is null for a serial run, which has the whole matrix.
static double solve(const struct part* part, const struct block* matrix, int n, int first, double* x, int iterations) {
    double *r = malloc(sizeof *r * (size_t)n), *p = malloc(sizeof *p * (size_t)n), *own = malloc(sizeof *own * (size_t)n);
    for (int i = 0; i < n; i++) x[i] = 0, r[i] = p[i] = right_side(first + i);
    double rho = part ? dot_together(part, r, r) : dot(r, r, n);
    for (int iteration = 0; iteration < iterations; iteration++) {
        const double* q = own;
        if (part)
            q = multiply_together(part, p, (uint64_t)iteration + 1);
        else
            multiply(matrix, p, own);
        const double alpha = rho / (part ? dot_together(part, p, q) : dot(p, q, n));
        for (int i = 0; i < n; i++) x[i] += alpha * p[i], r[i] -= alpha * q[i];
        const double before = rho;
        rho = part ? dot_together(part, r, r) : dot(r, r, n);
        for (int i = 0; i < n; i++) p[i] = r[i] + rho / before * p[i];
    }
    free(r);
    free(p);
    free(own);
    return sqrt(rho);
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    int rows = 1;  // number of rows of the grid: the greatest number that divides the number of columns
    for (int r = 2; r * r <= pes; r++)
        if (pes % (r * r) == 0) rows = r;
    const int columns = pes / rows, my_row = me / columns, my_column = me % columns;
    const int wanted = argc > 1 ? atoi(argv[1]) : 3600, iterations = argc > 2 ? atoi(argv[2]) : 15;
    const int n = (wanted + pes - 1) / pes * pes, high = n / rows, wide = n / columns;  // all parts have the same length

    struct part part = {.columns = wide, .first = my_column, .step = columns};
    part.offset = my_column / (columns / rows) == my_row ? my_column * wide % high : -1;
    make_block(&part.matrix, n, my_row * high, high, my_column * wide, wide);
    part.sum = shmem_malloc(sizeof(double) * (size_t)high);
    part.rows = shmem_malloc(sizeof(double) * (size_t)high);
    for (int i = 0; i < 2; i++) part.products[i] = shmem_malloc(sizeof(double) * (size_t)wide);
    part.products_came = shmem_calloc(1, sizeof *part.products_came);
    part.scalars = shmem_malloc(sizeof(double) * 2);
    for (int r = 0; r < rows; r++) {
        shmem_team_t team;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, r * columns, 1, columns, NULL, 0, &team);
        if (r == my_row) part.row = team;
    }
    double* x = malloc(sizeof *x * (size_t)wide);
    const double rest = solve(&part, NULL, wide, my_column * wide, x, iterations);

    struct block whole;
    double* reference = malloc(sizeof *reference * (size_t)n);
    make_block(&whole, n, 0, n, 0, n);
    const double rest_alone = solve(NULL, &whole, n, 0, reference, iterations);
    int* wrong = shmem_calloc(2, sizeof *wrong);
    for (int i = 0; i < wide; i++) wrong[0] += !(fabs(x[i] - reference[my_column * wide + i]) < 1e-9);  // sums differ in order
    wrong[0] += !(rest_alone < 1e-2 * sqrt((double)n)) || !(fabs(rest - rest_alone) < 1e-9 * sqrt((double)n));
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &wrong[1], &wrong[0], 1);
    const int all_wrong = wrong[1];
    if (me == 0)
        printf("%d rows, %d iterations on %d x %d PEs: %.3e remains, %s\n", n, iterations, rows, columns, rest,
               all_wrong ? "WRONG" : "as in the serial run");
    free(x);
    free(reference);
    free_block(&whole);
    free_block(&part.matrix);
    shmem_finalize();
    return all_wrong != 0;
}
