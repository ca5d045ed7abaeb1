/* raytrace.c - a ray tracer: spheres that mirror each other over a chequered floor.  A line of the
 * picture is one item of divide.h's divide and conquer.
 *
 * The picture belongs to virtual node 0.  Its holder receives the lines, and checks them against
 * lines that it draws itself.
 *
 *   raytrace [OPTIONS of crew.h] [WIDTH [HEIGHT]]     $RAYTRACE_OUT: the file of the picture (PPM)
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "examples/phoenix/crew/divide.h"

enum { TAG_LINE = 1, MAX_MIRRORS = 5, SPHERES = 9 };

struct vec { double x, y, z; };
struct ray { struct vec from, way; };
struct hit { double distance; struct vec at, normal, colour; double mirror; };

static long sizes[] = { 320, 240 };
static unsigned char *picture;		/* at the holder of virtual node 0; elsewhere NULL */
static unsigned char *have;		/* which lines have arrived */
static long lines;
static bool all_reported;

/* ---- geometry ---- */

static struct vec plus(struct vec a, struct vec b)
{
	return (struct vec){ a.x + b.x, a.y + b.y, a.z + b.z };
}
static struct vec times(struct vec a, double k)
{
	return (struct vec){ a.x * k, a.y * k, a.z * k };
}
static double dot(struct vec a, struct vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static struct vec unit(struct vec a) { return times(a, 1 / sqrt(dot(a, a))); }

static void meet_sphere(const struct ray *r, int i, struct hit *h)
{
	struct vec centre = { (i % 3 - 1) * 1.2, 0.5, 3 + i / 3 * 1.2 },
		   to = plus(r->from, times(centre, -1));
	double b = dot(to, r->way), c = dot(to, to) - 0.25, d = b * b - c;

	if (d < 0 || -b - sqrt(d) < 1e-6 || -b - sqrt(d) > h->distance)
		return;
	h->distance = -b - sqrt(d);
	h->at = plus(r->from, times(r->way, h->distance));
	h->normal = times(plus(h->at, times(centre, -1)), 2);
	h->colour = (struct vec){ 0.3 + i % 3 * 0.3, 0.3 + i % 2 * 0.4, 0.9 - i / 3 * 0.3 };
	h->mirror = 0.5;
}

static void meet_floor(const struct ray *r, struct hit *h)
{
	double d = -r->from.y / r->way.y;

	if (r->way.y > -1e-9 || d < 1e-6 || d > h->distance)
		return;
	h->distance = d;
	h->at = plus(r->from, times(r->way, d));
	h->normal = (struct vec){ 0, 1, 0 };
	double light = ((long)floor(h->at.x) + (long)floor(h->at.z)) & 1 ? 0.9 : 0.2;
	h->colour = (struct vec){ light, light, light };
	h->mirror = 0.1;
}

static bool meet(const struct ray *r, struct hit *h)
{
	h->distance = 1e9;
	for (int i = 0; i < SPHERES; i++)
		meet_sphere(r, i, h);
	meet_floor(r, h);
	return h->distance < 1e9;
}

static struct vec colour_of(struct ray r)
{
	static const struct vec sky = { 0.6, 0.8, 1.0 };
	struct vec sum = { 0 }, sun = unit((struct vec){ -1, 2, -1 });
	double weight = 1;
	struct hit h, shadow;

	for (int i = 0; i < MAX_MIRRORS; i++) {
		if (!meet(&r, &h))
			return plus(sum, times(sky, weight));
		double light = dot(h.normal, sun);
		if (light < 0 || meet(&(struct ray){ h.at, sun }, &shadow))
			light = 0;
		sum = plus(sum, times(h.colour, weight * (1 - h.mirror) * (0.2 + 0.8 * light)));
		weight *= h.mirror;
		r = (struct ray){ h.at, plus(r.way, times(h.normal, -2 * dot(r.way, h.normal))) };
	}
	return sum;
}

static unsigned char shade(double c) { return (unsigned char)(c >= 1 ? 255 : c * 255); }

static void draw_line(long y, unsigned char *rgb)
{
	for (long x = 0; x < sizes[0]; x++, rgb += 3) {
		struct vec sum = { 0 };
		for (int i = 0; i < 4; i++) {	/* four rays a pixel */
			double dx =
				((double)x + i % 2 * 0.5 - (double)sizes[0] / 2) / (double)sizes[1];
			double dy =
				((double)sizes[1] / 2 - (double)y - i / 2 * 0.5) / (double)sizes[1];
			sum = plus(sum, colour_of((struct ray){
						{ 0, 1.2, 0 },
						unit((struct vec){ dx, dy - 0.2, 1 }) }));
		}
		rgb[0] = shade(sum.x / 4);
		rgb[1] = shade(sum.y / 4);
		rgb[2] = shade(sum.z / 4);
	}
}

/* ---- lines ---- */

static size_t line_bytes(void) { return (size_t)sizes[0] * 3; }

static void leaf(uint64_t item, uint64_t sums[DIVIDE_SUMS])
{
	long y = (long)item;
	size_t len = sizeof y + line_bytes();
	unsigned char *body = allocate(len);

	memcpy(body, &y, sizeof y);
	draw_line(y, body + sizeof y);
	crew_post(0, body, len, TAG_LINE, 0);
	free(body);
	sums[0]++;
}

static void make_picture(void)
{
	if (picture)
		return;
	picture = allocate(line_bytes() * (size_t)sizes[1]);
	have = allocate((size_t)sizes[1]);
}

static void write_picture(void)
{
	const char *name = getenv("RAYTRACE_OUT");
	FILE *f = name ? fopen(name, "w") : NULL;

	if (f) {
		fprintf(f, "P6\n%ld %ld\n255\n", sizes[0], sizes[1]);
		fwrite(picture, line_bytes(), (size_t)sizes[1], f);
		fclose(f);
	}
}

/* The sum of the tree may arrive before the last lines or after them. */
static void finish_when_whole(void)
{
	if (lines < sizes[1] || !all_reported)
		return;
	crew_stop_clock();
	unsigned char *again = allocate(line_bytes());
	bool same = true;
	for (long y = 0; y < sizes[1]; y++) {
		draw_line(y, again);
		same &= !memcmp(again, picture + line_bytes() * (size_t)y, line_bytes());
	}
	free(again);
	write_picture();
	crew_finish(same, "%ld x %ld pixels", sizes[0], sizes[1]);
}

static void receive(const struct ph_msg *m)
{
	struct view in = { m->body, (const unsigned char *)m->body + m->len };
	long y;

	view_get(&in, &y, sizeof y);
	make_picture();
	view_get(&in, picture + line_bytes() * (size_t)y, line_bytes());
	if (have[y]++)
		crew_finish(false, "line %ld came twice", y);
	lines++;
	finish_when_whole();
}

static void done(const uint64_t sums[DIVIDE_SUMS])
{
	all_reported = sums[0] == (uint64_t)sizes[1];
	if (!all_reported)
		crew_finish(false, "%llu lines drawn", (unsigned long long)sums[0]);
	finish_when_whole();
}

static void pack(struct bytes *out)
{
	make_picture();
	bytes_put(out, &all_reported, sizeof all_reported);
	bytes_put(out, &lines, sizeof lines);
	bytes_put(out, have, (size_t)sizes[1]);
	bytes_put(out, picture, line_bytes() * (size_t)sizes[1]);
	free(picture);
	free(have);
	picture = have = NULL;
}

static void unpack(struct view *in)
{
	make_picture();
	view_get(in, &all_reported, sizeof all_reported);
	view_get(in, &lines, sizeof lines);
	view_get(in, have, (size_t)sizes[1]);
	view_get(in, picture, line_bytes() * (size_t)sizes[1]);
}

int main(int argc, char **argv)
{
	crew_options(argc, argv, sizes, 2, "[WIDTH [HEIGHT]]");
	struct divide drawing = { (uint64_t)sizes[1], 1, leaf, done, receive, pack, unpack };
	return divide_run("raytrace", line_bytes() * (size_t)sizes[1], &drawing);
}
