/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/start.h"

/* How long a simple unit rests before its rest counts (design §4). */
#define REST_NS (2 * NSEC_PER_SEC)
/* JobRemoved and PropertiesChanged of one event come in either order, but at most an event loop apart. */
#define GRACE_NS NSEC_PER_SEC

struct start {
        struct start_options options;
        struct start_outcome outcome;
        uint8_t invocation[16]; /* the last one seen, of any attempt */
        bool marked; /* a client announced its request */
        bool skipped; /* a condition failed since armed */
        uint64_t armed_condition_usec;
        uint64_t last_state_change_usec; /* as the signal before had it */
        uint32_t job; /* 0: none */
        uint64_t grace_end_ns; /* 0: not waiting for late signals */
        uint64_t stopped_ns; /* the running unit was down, before the start */
        uint64_t cgroup_ns, listen_ns;
        uint64_t active_ns; /* systemd says up; for simple units: forked */
        uint64_t busy_until_ns; /* for rest */
        char last_sub_state[START_STATE_MAX];
};

static bool one_of(const char *text, const char *const *list) {
        for (; *list; list++)
                if (streq(text, *list))
                        return true;
        return false;
}

static bool is_first_state(const char *sub) {
        return one_of(sub, (const char *const[]){ "condition", "start-pre", "start", NULL });
}

static bool is_activating(const char *sub) {
        return is_first_state(sub) || streq(sub, "start-post");
}

/* Dead, or between two attempts of Restart=: with RestartMode=direct a unit is never inactive there. */
static bool is_down(const struct start_values *v) {
        static const char *const restarting[] = {
                "auto-restart",
                "auto-restart-queued",
                "dead-before-auto-restart",
                "failed-before-auto-restart",
                NULL,
        };

        return streq(v->active_state, "inactive") || streq(v->active_state, "failed") ||
               one_of(v->sub_state, restarting);
}

struct start *start_new(const struct start_options *options, const struct start_values *before) {
        struct start *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->options = *options;
        memcpy(s->invocation, before->invocation_id, sizeof(s->invocation));
        s->armed_condition_usec = before->condition_usec;
        s->last_state_change_usec = before->state_change_usec;
        return s;
}

struct start *start_free(struct start *s) {
        free(s);
        return NULL;
}

static bool has_begun(const struct start *s) {
        return s->outcome.begin_ns > 0;
}

static bool is_done(const struct start *s) {
        return s->outcome.phase == START_DONE;
}

static void milestone(struct start *s, enum rec_milestone_kind kind, uint64_t time_ns) {
        for (uint32_t i = 0; i < s->outcome.milestone_count; i++)
                if (s->outcome.milestones[i].kind == kind)
                        return;
        if (s->outcome.milestone_count < START_MILESTONE_MAX)
                s->outcome.milestones[s->outcome.milestone_count++] =
                        (struct start_milestone){ .kind = kind, .time_ns = time_ns };
}

static void done(struct start *s, enum rec_result result, enum rec_end end, uint64_t end_ns) {
        if (s->outcome.queued_ns == 0)
                s->outcome.queued_ns = has_begun(s) ? s->outcome.begin_ns : end_ns;
        milestone(s, REC_MILESTONE_QUEUED, s->outcome.queued_ns);
        end_ns = MAX(end_ns, s->outcome.queued_ns);
        s->outcome.phase = START_DONE;
        s->outcome.result = result;
        s->outcome.end = end;
        s->outcome.end_ns = MAX(end_ns, s->outcome.begin_ns);
}

/* ---- queued ---- */

static void queued(struct start *s, uint64_t now_ns) {
        if (s->outcome.phase != START_ARMED)
                return;
        s->outcome.phase = START_QUEUED;
        s->outcome.queued_ns = now_ns;
}

/* The job was not a start (somebody stopped the unit): go on waiting. */
static void not_queued(struct start *s) {
        s->outcome.phase = START_ARMED;
        s->outcome.queued_ns = 0;
        s->outcome.job_result[0] = 0;
        s->grace_end_ns = 0;
}

void start_mark(struct start *s, uint64_t queued_ns) {
        if (is_done(s) || has_begun(s))
                return;
        s->marked = true;
        s->outcome.phase = START_QUEUED;
        s->outcome.queued_ns = queued_ns;
}

void start_job_new(struct start *s, uint32_t job, uint64_t now_ns) {
        if (is_done(s) || has_begun(s))
                return;
        s->job = job;
        s->grace_end_ns = 0;
        queued(s, now_ns);
}

/* The job is gone and the unit never began. */
static void job_without_begin(struct start *s, uint64_t now_ns) {
        const char *result = s->outcome.job_result;

        if (streq(result, "dependency"))
                done(s, REC_RESULT_DEPENDENCY, REC_END_EXIT, now_ns);
        else if (s->skipped)
                done(s, REC_RESULT_SKIPPED, REC_END_EXIT, now_ns);
        else if (streq(result, "canceled") && s->marked)
                done(s, REC_RESULT_CANCELED, REC_END_EXIT, now_ns);
        else if (streq(result, "canceled"))
                not_queued(s);
        else if (s->grace_end_ns == 0)
                s->grace_end_ns = now_ns + GRACE_NS;
}

void start_job_removed(struct start *s, uint32_t job, const char *result, uint64_t now_ns) {
        if (is_done(s) || job != s->job || job == 0)
                return;
        s->job = 0;
        snprintf(s->outcome.job_result, sizeof(s->outcome.job_result), "%s", result);

        if (!has_begun(s))
                job_without_begin(s, now_ns);
        else if (streq(result, "canceled"))
                done(s, REC_RESULT_CANCELED, REC_END_EXIT, now_ns);
        else if (streq(result, "timeout"))
                done(s, REC_RESULT_TIMEOUT, REC_END_EXIT, now_ns);
        else if (!streq(result, "done") ||
                 (s->options.type != START_SIMPLE && s->options.until == START_UNTIL_ACTIVE))
                s->grace_end_ns = now_ns + GRACE_NS;
}

/* The signals that should have come did not: the job's word decides. */
static void grace_is_over(struct start *s, uint64_t now_ns) {
        bool good = streq(s->outcome.job_result, "done");

        s->grace_end_ns = 0;
        if (has_begun(s))
                done(s, good ? REC_RESULT_ACTIVE : REC_RESULT_FAILED, good ? REC_END_UP : REC_END_EXIT,
                     now_ns - GRACE_NS);
        else if (streq(s->outcome.job_result, "timeout"))
                done(s, REC_RESULT_TIMEOUT, REC_END_EXIT, now_ns - GRACE_NS);
        else if (!good && !streq(s->outcome.job_result, "skipped"))
                done(s, REC_RESULT_FAILED, REC_END_EXIT, now_ns - GRACE_NS);
        else if (s->marked)
                done(s, REC_RESULT_SKIPPED, REC_END_EXIT, now_ns - GRACE_NS); /* was active already */
        else
                not_queued(s);
}

/* ---- begun ---- */

/* T0. Only the first states are stamped when the unit leaves inactivity; when later ones were merged into
 * this signal, the cgroup is the nearest witness. */
static uint64_t begin_time(const struct start *s, const struct start_values *v, uint64_t now_ns) {
        uint64_t inactive_exit_ns = v->inactive_exit_usec * NSEC_PER_USEC;

        if (is_first_state(v->sub_state) && v->state_change_usec > 0)
                return v->state_change_usec * NSEC_PER_USEC;
        if (s->cgroup_ns > 0)
                return s->cgroup_ns;
        if (inactive_exit_ns > 0 && inactive_exit_ns >= s->outcome.queued_ns)
                return inactive_exit_ns;
        return now_ns;
}

static void begin(struct start *s, const struct start_values *v, uint64_t now_ns) {
        uint64_t begin_ns = begin_time(s, v, now_ns);

        s->outcome.phase = START_STARTING;
        s->outcome.begin_ns = begin_ns;
        s->outcome.attempts = 1;
        memcpy(s->outcome.invocation_id, v->invocation_id, sizeof(v->invocation_id));
        /* The stop of a running unit is not start time. */
        if (s->stopped_ns > s->outcome.queued_ns && s->stopped_ns <= begin_ns)
                s->outcome.queued_ns = s->stopped_ns;
        if (s->outcome.queued_ns == 0 || s->outcome.queued_ns > begin_ns)
                s->outcome.queued_ns = begin_ns;
        milestone(s, REC_MILESTONE_QUEUED, s->outcome.queued_ns);
        milestone(s, REC_MILESTONE_BEGIN, begin_ns);
}

/* ---- ended ---- */

/* `usec` if it belongs to this attempt, else the fallback. */
static uint64_t since_begin(const struct start *s, uint64_t usec, uint64_t fallback_ns) {
        return usec * NSEC_PER_USEC >= s->outcome.begin_ns ? usec * NSEC_PER_USEC : fallback_ns;
}

static enum rec_result result_of(const char *unit_result) {
        if (streq(unit_result, "success"))
                return REC_RESULT_EXITED;
        if (streq(unit_result, "exec-condition"))
                return REC_RESULT_SKIPPED;
        if (streq(unit_result, "timeout"))
                return REC_RESULT_TIMEOUT;
        return REC_RESULT_FAILED;
}

static void note_failure(struct start *s, const struct start_values *v, uint64_t now_ns) {
        enum rec_result result = result_of(v->result);

        if (result == REC_RESULT_TIMEOUT)
                milestone(s, REC_MILESTONE_TIMED_OUT, since_begin(s, v->state_change_usec, now_ns));
        else if (result == REC_RESULT_FAILED)
                milestone(s, REC_MILESTONE_FAILED, since_begin(s, v->state_change_usec, now_ns));
}

static void unit_is_down(struct start *s, const struct start_values *v, uint64_t now_ns) {
        uint64_t end_ns =
                since_begin(s, v->inactive_enter_usec, since_begin(s, v->state_change_usec, now_ns));
        enum rec_result result = result_of(v->result);

        if (result == REC_RESULT_EXITED) {
                end_ns = since_begin(s, v->exec_main_exit_usec, end_ns);
                milestone(s, REC_MILESTONE_EXITED, end_ns);
        }
        done(s, result, REC_END_EXIT, end_ns);
}

/* T1 of a oneshot: the exit of its last command. `v` is the first signal after the commands. */
static uint64_t oneshot_end(const struct start *s, const struct start_values *v, uint64_t now_ns) {
        uint64_t change_ns = since_begin(s, v->state_change_usec, now_ns);

        if (streq(v->active_state, "active"))
                return since_begin(s, v->active_enter_usec, change_ns);
        if (s->options.has_start_post)
                return streq(s->last_sub_state, "start-post")
                               ? change_ns
                               : since_begin(s, v->inactive_enter_usec, change_ns);
        return since_begin(s, v->exec_main_exit_usec, change_ns);
}

static void oneshot_changed(struct start *s, const struct start_values *v, uint64_t now_ns) {
        bool active = streq(v->active_state, "active");
        uint64_t end_ns;

        if (is_activating(v->sub_state) || !streq(v->result, "success"))
                return;
        end_ns = oneshot_end(s, v, now_ns);
        milestone(s, active ? REC_MILESTONE_ACTIVE : REC_MILESTONE_EXITED, end_ns);
        s->active_ns = end_ns;
        if (s->options.until == START_UNTIL_ACTIVE || !active)
                done(s, active ? REC_RESULT_ACTIVE : REC_RESULT_EXITED, REC_END_UP, end_ns);
}

/* A simple unit is up when it listens, but not before its ExecStartPost= is through. */
static void check_listen(struct start *s) {
        if (is_done(s) || !has_begun(s) || s->listen_ns == 0)
                return;
        if (s->options.until == START_UNTIL_LISTEN)
                done(s,
                     s->active_ns && s->options.type != START_SIMPLE ? REC_RESULT_ACTIVE
                                                                     : REC_RESULT_RUNNING,
                     REC_END_LISTEN, s->listen_ns);
        else if (s->options.until == START_UNTIL_ACTIVE && s->options.type == START_SIMPLE && s->active_ns)
                done(s, REC_RESULT_RUNNING, REC_END_LISTEN, MAX(s->listen_ns, s->active_ns));
}

static void active_changed(struct start *s, const struct start_values *v, uint64_t now_ns) {
        if (s->active_ns || !streq(v->active_state, "active"))
                return;
        s->active_ns = since_begin(s, v->active_enter_usec, now_ns);
        s->busy_until_ns = s->active_ns;
        milestone(s, REC_MILESTONE_ACTIVE, s->active_ns);
        if (s->options.type == START_NOTIFYING && s->options.until == START_UNTIL_ACTIVE)
                done(s, REC_RESULT_ACTIVE, REC_END_UP, s->active_ns);
}

/* A later attempt came before the end of the first one was seen: signals were merged. */
static void next_attempt(struct start *s, const struct start_values *v, uint64_t now_ns) {
        uint64_t end_ns;

        s->outcome.attempts++;
        if (is_done(s))
                return;
        end_ns = since_begin(s, v->inactive_enter_usec, since_begin(s, v->state_change_usec, now_ns));
        milestone(s, REC_MILESTONE_FAILED, end_ns);
        done(s, REC_RESULT_FAILED, REC_END_EXIT, end_ns);
}

static bool is_new_invocation(struct start *s, const struct start_values *v) {
        static const uint8_t none[16];

        if (memcmp(v->invocation_id, none, sizeof(none)) == 0 ||
            memcmp(v->invocation_id, s->invocation, sizeof(s->invocation)) == 0)
                return false;
        memcpy(s->invocation, v->invocation_id, sizeof(s->invocation));
        return true;
}

static void before_begin(struct start *s, const struct start_values *v, uint64_t now_ns) {
        if (v->inactive_enter_usec * NSEC_PER_USEC > s->outcome.queued_ns)
                s->stopped_ns = v->inactive_enter_usec * NSEC_PER_USEC;
        if (!v->condition_result && v->condition_usec > s->armed_condition_usec)
                s->skipped = true;
        if (s->skipped && s->job == 0 && s->outcome.job_result[0])
                done(s, REC_RESULT_SKIPPED, REC_END_EXIT, now_ns);
}

/* systemd makes the new invocation's id, and even its main process, before the unit leaves its old state, and a
 * signal may come in between (seen with systemd 252): that is no start that ended at once. */
static bool is_early(struct start *s, const struct start_values *v) {
        bool same = v->state_change_usec == s->last_state_change_usec;

        s->last_state_change_usec = v->state_change_usec;
        return !has_begun(s) && same && is_down(v);
}

void start_unit_changed(struct start *s, const struct start_values *v, uint64_t now_ns) {
        if (is_early(s, v)) {
                if (!is_done(s))
                        before_begin(s, v, now_ns);
                return;
        }
        if (is_new_invocation(s, v)) {
                if (has_begun(s))
                        next_attempt(s, v, now_ns);
                else {
                        before_begin(s, v, now_ns);
                        if (!is_done(s))
                                begin(s, v, now_ns);
                }
        } else if (!has_begun(s) && !is_done(s))
                before_begin(s, v, now_ns);
        if (is_done(s) || !has_begun(s))
                return;

        snprintf(s->outcome.unit_result, sizeof(s->outcome.unit_result), "%s", v->result);
        note_failure(s, v, now_ns);
        if (s->options.type == START_ONESHOT)
                oneshot_changed(s, v, now_ns);
        else
                active_changed(s, v, now_ns);
        check_listen(s);
        if (!is_done(s) && is_down(v))
                unit_is_down(s, v, now_ns);
        snprintf(s->last_sub_state, sizeof(s->last_sub_state), "%s", v->sub_state);
}

void start_unit_removed(struct start *s, uint64_t now_ns) {
        /* Before its start an inactive unit comes and goes as somebody looks at it. */
        if (is_done(s) || !has_begun(s))
                return;
        done(s, result_of(s->outcome.unit_result), REC_END_EXIT, now_ns);
}

/* ---- the capture's word, and time ---- */

void start_cgroup(struct start *s, uint64_t time_ns) {
        if (s->cgroup_ns == 0)
                s->cgroup_ns = time_ns;
}

void start_listen(struct start *s, uint64_t time_ns) {
        if (s->listen_ns == 0)
                s->listen_ns = time_ns;
        check_listen(s);
}

static void check_rest(struct start *s, bool busy, uint64_t last_on_cpu_ns, uint64_t now_ns) {
        if (s->options.type != START_SIMPLE || s->options.until != START_UNTIL_ACTIVE || !s->active_ns)
                return;
        s->busy_until_ns = busy ? now_ns : MAX(s->busy_until_ns, MIN(last_on_cpu_ns, now_ns));
        if (now_ns >= s->busy_until_ns + REST_NS)
                done(s, REC_RESULT_RUNNING, REC_END_IDLE, s->busy_until_ns);
}

void start_tick(struct start *s, bool busy, uint64_t last_on_cpu_ns, uint64_t now_ns) {
        if (is_done(s))
                return;
        if (s->grace_end_ns > 0 && now_ns >= s->grace_end_ns) {
                grace_is_over(s, now_ns);
                return;
        }
        if (!has_begun(s))
                return;
        if (s->options.until == START_UNTIL_TIME && now_ns - s->outcome.begin_ns >= s->options.until_ns)
                done(s,
                     s->active_ns && s->options.type != START_SIMPLE ? REC_RESULT_ACTIVE
                                                                     : REC_RESULT_RUNNING,
                     REC_END_TIME, s->outcome.begin_ns + s->options.until_ns);
        else
                check_rest(s, busy, last_on_cpu_ns, now_ns);
}

void start_interrupt(struct start *s, uint64_t now_ns) {
        if (!is_done(s))
                done(s, REC_RESULT_INTERRUPTED, REC_END_INTERRUPTED, now_ns);
}

const struct start_outcome *start_outcome(const struct start *s) {
        return &s->outcome;
}

enum rec_slot start_control_slot(const char *sub_state) {
        if (streq(sub_state, "condition"))
                return REC_SLOT_CONDITION;
        if (streq(sub_state, "start-pre"))
                return REC_SLOT_START_PRE;
        if (streq(sub_state, "start"))
                return REC_SLOT_START; /* forking: the process that will fork */
        if (streq(sub_state, "start-post"))
                return REC_SLOT_START_POST;
        if (startswith(sub_state, "reload"))
                return REC_SLOT_RELOAD;
        /* Not stop-sigterm and the like: there ControlPID may still be a command of the start that is being killed. */
        if (streq(sub_state, "stop") || streq(sub_state, "stop-post"))
                return REC_SLOT_STOP;
        return REC_SLOT_UNKNOWN;
}
