/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads with stacks of 8 MB and 64 KB that work, wait, begin and end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long work;

static void *run(void *argument) {
        char text[512];

        for (int i = 0; i < 300; i++) {
                pthread_mutex_lock(&lock);
                for (int k = 0; k < 2000; k++)
                        work = work * 3 + (unsigned long) k;
                pthread_mutex_unlock(&lock);
                memset(text, i, sizeof(text));
                work += (unsigned long) text[i % 512];
        }
        return NULL;
}

int main(void) {
        for (int i = 0; i < 150; i++) {
                pthread_t large, small;
                pthread_attr_t attributes;

                pthread_attr_init(&attributes);
                pthread_attr_setstacksize(&attributes, 8 << 20);
                pthread_create(&large, &attributes, run, NULL);
                pthread_attr_setstacksize(&attributes, 64 << 10);
                pthread_create(&small, &attributes, run, NULL);
                pthread_join(large, NULL);
                pthread_join(small, NULL);
        }
        return work == 0;
}
