"""What the protocol asks of an agent that serves sessions, requirement by requirement, and which tests hold us to it.

Each requirement has an id `area:feature:variant`, a source, a sentence, and the tests as `module::function`;
`tests/protocol/test_requirements.py` fails when one has no test or names one that is not there. Sources:

- `acp`: the protocol's documentation of version 1 and the descriptions in its schema, the page in brackets.
- `acp unstable`: the same of the unstable schema.
- `older`: the chat history proposal that came before `session/list`.
"""

from dataclasses import dataclass

__all__ = ["REQUIREMENTS", "Requirement"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that has to be so."""

    id: str
    source: str
    text: str
    tests: tuple[str, ...]


def _need(id_: str, source: str, text: str, *tests: str) -> Requirement:
    return Requirement(id_, source, text, tests)


_INITIALIZE = (
    _need(
        "initialize:version:supported",
        "acp [initialization]",
        "MUST answer a supported version with that version.",
        "test_jsonrpc::test_the_version_is_always_one",
    ),
    _need(
        "initialize:version:other",
        "acp [initialization]",
        "MUST answer another version with the latest it supports.",
        "test_jsonrpc::test_the_version_is_always_one",
    ),
    _need(
        "initialize:capability:baseline",
        "acp [initialization]",
        "MUST support session/new, prompt, cancel and update.",
        "test_sessions::test_a_new_session_gets_its_commands_after_the_answer",
        "test_sessions::test_a_browse_session_answers_prompts",
        "test_sessions::test_a_cancelled_prompt_ends_as_cancelled",
    ),
    _need(
        "initialize:extension:announced",
        "acp [extensibility]",
        "SHOULD announce extensions in a capability's _meta.",
        "test_older::test_the_older_proposal_is_announced",
        "test_live::test_a_client_announces_one_of_two_extensions",
    ),
    _need(
        "initialize:extension:meta",
        "acp [extensibility]",
        "MUST NOT add fields outside _meta; each exception is named.",
        "test_docs::test_a_worked_exchange_happens_as_documented",
    ),
    _need(
        "initialize:extension:unknown",
        "acp [extensibility]",
        "MUST answer unknown methods with -32601, ignore notifications.",
        "test_jsonrpc::test_unknown_requests_are_refused_and_unknown_notifications_ignored",
    ),
)

_LIST = (
    _need(
        "list:cwd:absolute",
        "acp [session-list]",
        "cwd MUST be absolute.",
        "test_sessions::test_a_wrong_filter_is_an_error",
    ),
    _need(
        "list:cwd:filter",
        "acp [session-list]",
        "With cwd only sessions of that very directory MUST be returned.",
        "test_sessions::test_a_list_can_be_narrowed",
    ),
    _need(
        "list:empty",
        "acp [session-list]",
        "No match MUST be an empty array.",
        "test_sessions::test_a_list_can_be_narrowed",
    ),
    _need(
        "list:page:size",
        "acp [session-list]",
        "SHOULD limit the size of a page.",
        "test_sessions::test_pages_follow_each_other",
        "test_sessions::test_a_page_of_hostile_sessions_is_cut_to_fit_a_frame",
    ),
    _need(
        "list:cursor:end",
        "acp [session-list]",
        "nextCursor MUST be absent at the end.",
        "test_sessions::test_pages_follow_each_other",
    ),
    _need(
        "list:cursor:invalid",
        "acp [session-list]",
        "SHOULD answer an invalid cursor with an error.",
        "test_sessions::test_a_wrong_filter_is_an_error",
        "test_paging::TestPaging",
    ),
    _need(
        "list:cursor:stable",
        "acp [session-list]",
        "Pages together show every session that stays as it is exactly once.",
        "test_paging::TestPaging",
    ),
    _need(
        "list:row:id",
        "acp [session-list]",
        "sessionId and cwd are required, cwd MUST be absolute.",
        "test_sessions::test_a_list_shows_what_is_known_and_nothing_else",
    ),
    _need(
        "list:row:time",
        "acp [session-list]",
        "updatedAt is an ISO 8601 time.",
        "test_sessions::test_a_list_shows_what_is_known_and_nothing_else",
    ),
    _need(
        "list:row:directories",
        "acp [session-list]",
        "additionalDirectories, if any, is complete, ordered and absolute.",
        "test_sessions::test_a_list_shows_what_is_known_and_nothing_else",
    ),
    _need(
        "list:no-effect",
        "acp [session-list]",
        "MUST NOT restore or change anything.",
        "test_index::test_listing_changes_no_history",
    ),
    _need(
        "info:update:fields",
        "acp [session-list]",
        "session_info_update has only what changed; absent is unchanged.",
        "test_push::test_only_what_changed_is_pushed",
    ),
)

_OPEN = (
    _need(
        "load:order",
        "acp [session-setup]",
        "MUST replay the entire conversation and then answer.",
        "test_sessions::test_a_load_replays_everything_before_its_answer_and_is_silent_after",
        "test_replay::test_long_text_is_split_and_never_shortened",
    ),
    _need(
        "load:session-order",
        "acp [session-setup]",
        "Notifications of a session keep their order.",
        "test_sessions::test_concurrent_loads_keep_the_order_of_each_session",
    ),
    _need(
        "load:result:object",
        "acp [schema]",
        "The result is an object.",
        "test_sessions::test_a_load_replays_everything_before_its_answer_and_is_silent_after",
    ),
    _need(
        "load:unknown",
        "acp [schema]",
        "An unknown session is -32002.",
        "test_sessions::test_an_unknown_session_is_not_found",
    ),
    _need(
        "load:cwd",
        "acp [session-setup]",
        "cwd MUST be absolute.",
        "test_sessions::test_wrong_load_parameters_are_an_error",
    ),
    _need(
        "load:servers",
        "acp [session-setup]",
        "mcpServers may be empty, missing or null.",
        "test_sessions::test_missing_servers_are_accepted",
        "test_modes::test_what_the_bridge_has_no_use_for_is_accepted",
    ),
    _need(
        "load:message-id",
        "acp [message ids]",
        "SHOULD send messageId; the same for all chunks of a message, unique.",
        "test_replay::test_each_part_is_one_chunk_with_the_turn_s_id",
    ),
    _need(
        "load:notices",
        "acp [session-notices]",
        "Notices SHOULD NOT be replayed.",
        "test_replay::test_blank_parts_and_notices_give_nothing",
    ),
    _need(
        "load:compaction",
        "acp [session-compaction]",
        "Only clients with the capability get compaction_update, in final form.",
        "test_replay::test_a_compaction_is_told_in_words_or_as_such",
    ),
    _need(
        "load:tool-calls",
        "acp [tool-calls]",
        "Each call comes with its final status; an open one has failed or goes on.",
        "test_replay::test_a_tool_call_is_one_update_with_its_outcome",
        "test_replay::test_a_call_without_outcome_has_failed_unless_the_session_is_running",
    ),
    _need(
        "load:plan",
        "acp [agent-plan]",
        "A plan MUST be complete each time; it replaces the one before.",
        "test_replay::test_a_plan_replaces_the_one_before",
    ),
    _need(
        "load:usage",
        "acp [session-usage]",
        "usage_update has tokens used and context size, and the cost if known.",
        "test_sessions::test_a_load_replays_everything_before_its_answer_and_is_silent_after",
    ),
    _need(
        "resume:no-replay",
        "acp [session-setup]",
        "MUST NOT replay before responding.",
        "test_modes::test_resume_replays_nothing_and_follows",
    ),
    _need(
        "resume:announced",
        "acp [session-setup]",
        "Works whether or not it is announced.",
        "test_modes::test_resume_is_answered_but_not_announced",
    ),
    _need(
        "new:updates",
        "acp [session-setup]",
        "Nothing is sent for a session before the answer that creates it.",
        "test_sessions::test_a_new_session_gets_its_commands_after_the_answer",
    ),
    _need(
        "new:id",
        "acp [session-setup]",
        "The id is unique and can be loaded later.",
        "test_sessions::test_a_browse_session_can_be_loaded_for_ever",
    ),
    _need(
        "close:work",
        "acp [session-setup]",
        "MUST cancel ongoing work and free resources.",
        "test_sessions::test_closing_ends_a_running_load",
        "test_follow::test_a_closed_session_is_not_followed",
    ),
    _need(
        "fork:new-session",
        "acp unstable",
        "Makes a new session; the original stays untouched.",
        "test_modes::test_a_fork_is_a_new_session",
    ),
    _need(
        "fork:refused",
        "acp unstable",
        "What cannot be forked is an error.",
        "test_modes::test_a_session_that_cannot_be_forked_says_why",
    ),
)

_PROMPT = (
    _need(
        "prompt:updates",
        "acp [prompt-turn]",
        "Updates precede the response.",
        "test_sessions::test_a_prompt_to_a_record_says_how_to_go_on",
    ),
    _need(
        "prompt:cancelled",
        "acp [prompt-turn]",
        "MUST answer with cancelled after session/cancel.",
        "test_sessions::test_a_cancelled_prompt_ends_as_cancelled",
    ),
    _need(
        "cancel-request:answered",
        "acp [cancellation]",
        "A cancelled request MUST still be answered, with -32800.",
        "test_sessions::test_a_cancelled_load_is_answered_once",
    ),
    _need(
        "cancel-request:unknown",
        "acp [cancellation]",
        "Unknown and finished ids MUST be ignored.",
        "test_sessions::test_a_cancelled_load_is_answered_once",
    ),
    _need(
        "commands:update",
        "acp [slash-commands]",
        "Commands have a name, a description and a hint.",
        "test_docs::test_a_worked_exchange_happens_as_documented",
    ),
)

_DECIDE = (
    _need(
        "delete:list",
        "acp [session-delete]",
        "MUST remove the session from future lists.",
        "test_deciding::test_a_deleted_session_is_hidden_and_can_still_be_loaded",
        "test_visibility::test_a_hidden_session_is_in_no_list_count_or_search",
        "test_visibility::test_hiding_survives_a_restart_and_a_lost_index",
    ),
    _need(
        "delete:idempotent",
        "acp [session-delete]",
        "SHOULD succeed silently for unknown and deleted ids.",
        "test_deciding::test_deleting_again_or_what_is_unknown_succeeds",
    ),
    _need(
        "delete:active",
        "acp [session-delete]",
        "What happens to an active session is defined and documented.",
        "test_deciding::test_an_open_session_goes_on_when_it_is_deleted",
        "test_deciding::test_trash_takes_the_files_of_a_session_that_nobody_has_open",
    ),
    _need(
        "delete:announced",
        "acp [session-delete]",
        "MUST be announced to be called.",
        "test_deciding::test_delete_can_be_off",
        "test_deciding::test_delete_is_announced",
    ),
    _need(
        "mode:offered",
        "acp [session-modes]",
        "modes has the current mode and all available ones.",
        "test_modes::test_opening_a_session_offers_the_modes",
    ),
    _need(
        "mode:set",
        "acp [session-modes]",
        "The mode MUST be one of availableModes.",
        "test_modes::test_a_mode_can_be_set",
        "test_modes::test_what_is_not_offered_is_refused",
    ),
    _need(
        "config:set",
        "acp [session-config-options]",
        "The answer MUST have the complete list of options.",
        "test_modes::test_a_mode_can_be_set",
        "test_modes::test_what_is_not_offered_is_refused",
    ),
    _need(
        "archive:list",
        "acp unstable",
        "MUST list too, leave archived sessions out by default, and say archived in each row.",
        "test_deciding::test_unstable_methods_are_announced",
        "test_deciding::test_an_archived_session_is_left_out_unless_asked_for",
    ),
    _need(
        "archive:active",
        "acp unstable",
        "Archiving an active session closes it first.",
        "test_deciding::test_an_archived_session_is_left_out_unless_asked_for",
    ),
    _need(
        "archive:idempotent",
        "acp unstable",
        "Both are idempotent; unknown is -32002.",
        "test_deciding::test_an_archived_session_is_left_out_unless_asked_for",
        "test_deciding::test_unstable_methods_know_no_unknown_session",
    ),
    _need(
        "status:value",
        "acp unstable",
        "open or saved, without side effects; unknown is -32002 with sessionId.",
        "test_deciding::test_status_says_what_is_open",
        "test_deciding::test_unstable_methods_know_no_unknown_session",
    ),
    _need(
        "title:stored",
        "acp unstable",
        "MUST store before answering, and answer with what was stored.",
        "test_deciding::test_a_title_is_stored_as_one_line",
    ),
    _need(
        "title:unusable",
        "acp unstable",
        "A blank title MUST be -32602.",
        "test_deciding::test_a_title_is_stored_as_one_line",
    ),
    _need(
        "title:kept",
        "acp unstable",
        "SHOULD NOT replace it with a generated one.",
        "test_visibility::test_a_title_of_the_user_replaces_the_tools",
    ),
    _need(
        "unstable:off",
        "acp unstable",
        "Unstable methods answer -32601 unless they are announced.",
        "test_deciding::test_unstable_methods_do_not_exist_unless_they_are_switched_on",
    ),
)

_OLDER = (
    _need(
        "older:capability:sessionHistory",
        "older",
        "agentCapabilities.sessionHistory {supported, maxResults}.",
        "test_older::test_the_older_proposal_is_announced",
    ),
    _need("older:list:limit", "older", "limit", "test_older::test_offset_and_limit_cut_a_window"),
    _need(
        "older:list:offset",
        "older",
        "offset",
        "test_older::test_offset_and_limit_cut_a_window",
        "test_older::test_wrong_root_parameters_are_an_error",
    ),
    _need("older:list:search", "older", "search", "test_older::test_search_finds_what_was_said"),
    *(
        _need(f"older:list:{field}", "older", field, "test_older::test_a_list_by_the_older_proposal_has_its_fields")
        for field in ("total", "createdAt", "lastModified", "source", "messageCount")
    ),
    *(
        _need(f"older:get:{field}", "older", field, "test_older::test_get_gives_the_conversation")
        for field in ("sessionId", "title", "createdAt", "role", "timestamp", "content", "toolCalls")
    ),
    _need("older:get:limit", "older", "limit", "test_older::test_get_goes_on_where_it_stopped"),
    _need("older:get:offset", "older", "offset", "test_older::test_get_goes_on_where_it_stopped"),
    _need(
        "older:get:bound",
        "older",
        "An answer is bounded and says where to go on.",
        "test_older::test_get_stays_below_a_frame_and_loses_nothing",
    ),
    _need("older:get:unknown", "older", "An unknown session is an error.", "test_older::test_get_of_what_is_not_there"),
)

REQUIREMENTS: tuple[Requirement, ...] = (*_INITIALIZE, *_LIST, *_OPEN, *_PROMPT, *_DECIDE, *_OLDER)
