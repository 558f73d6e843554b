// Made by `make typescript` from src/keepward/api.py: do not edit.
// schemas: d4d8cbe1f3bf87596868b2254f6952111dfe89818ec1f41158cdf7ba2a443f0e
import type { components } from "./schema.js";

/** The types of the HTTP API, by name. */
export type Schemas = components["schemas"];

/** How often a call may be sent, and the key of its answer whose value is the result. */
export interface CallFacts {
  /** `keyed`: again, under its idempotency key; `repeats`: again; `once`: again only after a 429. */
  sent: "keyed" | "repeats" | "once";
  answer?: string;
}

/** Every operation that `POST /memory/call/{operation}` takes. */
export const CALLS = {
  recall: { sent: "repeats" },
  list_memories: { sent: "repeats" },
  get: { sent: "repeats" },
  history: { sent: "repeats" },
  facets: { sent: "repeats" },
  activity: { sent: "repeats" },
  sources: { sent: "repeats" },
  news: { sent: "repeats" },
  users: { sent: "repeats", answer: "items" },
  projects: { sent: "repeats", answer: "items" },
  lineage: { sent: "repeats" },
  context: { sent: "repeats" },
  snapshot: { sent: "repeats" },
  memory_block: { sent: "repeats" },
  replay: { sent: "repeats" },
  receipts: { sent: "repeats" },
  receipt: { sent: "repeats" },
  check: { sent: "once" },
  doctor: { sent: "repeats", answer: "items" },
  status: { sent: "repeats" },
  identity: { sent: "repeats" },
  update_identity: { sent: "keyed" },
  remember: { sent: "keyed" },
  revise: { sent: "keyed" },
  append: { sent: "keyed" },
  forget: { sent: "keyed" },
  archive: { sent: "keyed" },
  restore: { sent: "keyed" },
  reinforce: { sent: "keyed" },
  move: { sent: "keyed" },
  promote: { sent: "keyed" },
  supersede: { sent: "keyed" },
  merge: { sent: "keyed" },
  forget_many: { sent: "once" },
  plan_forget_matching: { sent: "repeats" },
  forget_matching: { sent: "once" },
  propose: { sent: "keyed" },
  remember_many: { sent: "once", answer: "outcomes" },
  add: { sent: "once" },
  feedback: { sent: "once" },
  pending: { sent: "repeats" },
  proposal: { sent: "repeats" },
  notices: { sent: "once", answer: "items" },
  approve: { sent: "keyed" },
  amend: { sent: "keyed" },
  create_branch: { sent: "once" },
  branches: { sent: "repeats" },
  branch_changes: { sent: "repeats" },
  merge_branch: { sent: "once" },
  discard_branch: { sent: "once" },
  reject: { sent: "once" },
  reopen: { sent: "once" },
  approve_many: { sent: "once", answer: "results" },
  reject_many: { sent: "once", answer: "results" },
  log: { sent: "repeats" },
  show: { sent: "repeats" },
  diff: { sent: "repeats" },
  rollback: { sent: "once" },
  verify: { sent: "repeats" },
  rebuild: { sent: "once" },
  reindex: { sent: "once" },
  impact: { sent: "repeats" },
  export_subject: { sent: "repeats" },
  plan_contain: { sent: "repeats" },
  contain: { sent: "once" },
  blame: { sent: "repeats" },
  contradictions: { sent: "repeats" },
  bisect: { sent: "repeats" },
  run_tests: { sent: "repeats" },
  context_diff: { sent: "repeats" },
  plan_erase: { sent: "repeats" },
  erase: { sent: "once" },
  certificate: { sent: "repeats" },
  plan_adopt: { sent: "repeats" },
  adopt: { sent: "once" },
  train_reranker: { sent: "once" },
  jobs: { sent: "repeats", answer: "items" },
  run_jobs: { sent: "once", answer: "items" },
  merge_candidates: { sent: "repeats", answer: "items" },
  create_token: { sent: "once" },
  tokens: { sent: "repeats", answer: "items" },
  revoke_token: { sent: "once" },
} satisfies Record<string, CallFacts>;

export type CallName = keyof typeof CALLS;

/** The sources of what people and agents wrote, and not pages, tools and documents. */
export const PEOPLE_AND_AGENTS = ["operator", "manual", "user_message", "user", "chat", "assistant", "inference", "extracted", "promotion", "system", "job", "seeded"] as const;

/** The operations of a memory, each with the name, arguments and result that it has in Python. */
export abstract class Operations {
  /** Send an operation with its arguments by name, and return its result. */
  protected abstract call<T>(operation: CallName, given: object): Promise<T>;

  /** Return the memories most relevant to a query, best first. Filters apply before the limit. */
  recall(query: Schemas["RecallArguments"]["query"], options: Omit<Schemas["RecallArguments"], "query"> = {}): Promise<Schemas["Found"]> {
    return this.call("recall", { query, ...options });
  }

  /** Return the memories that pass all filters, newest first unless `sort` says otherwise. */
  listMemories(options: Schemas["ListMemoriesArguments"] = {}): Promise<Schemas["Listed"]> {
    return this.call("list_memories", { ...options });
  }

  /** Return a memory by id or alias, whatever its status. */
  get(memoryId: Schemas["GetArguments"]["memory_id"], options: Omit<Schemas["GetArguments"], "memory_id"> = {}): Promise<Schemas["Record"]> {
    return this.call("get", { memory_id: memoryId, ...options });
  }

  /** Return every version of a memory with the commit that made it, oldest first; damaged ones are named. */
  history(memoryId: Schemas["HistoryArguments"]["memory_id"]): Promise<Schemas["Versions"]> {
    return this.call("history", { memory_id: memoryId });
  }

  /** Return how many memories pass the filters of `listMemories`, in total and by value of each facet. */
  facets(options: Schemas["FacetsArguments"] = {}): Promise<Schemas["Facets"]> {
    return this.call("facets", { ...options });
  }

  /** Return how many versions were written on each day, by author or another field. */
  activity(options: Schemas["ActivityArguments"] = {}): Promise<Schemas["Activity"]> {
    return this.call("activity", { ...options });
  }

  /** Return how much each actor, source, reference and session wrote; filters are as in `activity`. */
  sources(options: Schemas["SourcesArguments"] = {}): Promise<Schemas["Sources"]> {
    return this.call("sources", { ...options });
  }

  /** Return what happened since an instant: what was learned, changed, ended, erased, decided and refused. */
  news(since: Schemas["NewsArguments"]["since"], options: Omit<Schemas["NewsArguments"], "since"> = {}): Promise<Schemas["News"]> {
    return this.call("news", { since, ...options });
  }

  /** Return the users with memories at this scope and below, with the number of memories, by name. */
  users(options: Schemas["UsersArguments"] = {}): Promise<Schemas["Users"]["items"]> {
    return this.call("users", { ...options });
  }

  /** Return the projects with memories at this scope and below, as `users` does. */
  projects(options: Schemas["ProjectsArguments"] = {}): Promise<Schemas["Projects"]["items"]> {
    return this.call("projects", { ...options });
  }

  /** Return the memories that a memory was derived from and those derived from it, over all steps. */
  lineage(memoryId: Schemas["LineageArguments"]["memory_id"]): Promise<Schemas["Lineage"]> {
    return this.call("lineage", { memory_id: memoryId });
  }

  /** Compile the memories that a model needs for an objective, with a receipt. */
  context(objective: Schemas["ContextArguments"]["objective"], options: Omit<Schemas["ContextArguments"], "objective"> = {}): Promise<Schemas["CompiledContext"]> {
    return this.call("context", { objective, ...options });
  }

  /** Compile what every prompt of this scope needs: core memories, permanent memories and keyed states; no recall. */
  snapshot(options: Schemas["SnapshotArguments"] = {}): Promise<Schemas["CompiledContext"]> {
    return this.call("snapshot", { ...options });
  }

  /** Compile only the memories that bear on a query; the text is empty if none does. */
  memoryBlock(query: Schemas["MemoryBlockArguments"]["query"], options: Omit<Schemas["MemoryBlockArguments"], "query"> = {}): Promise<Schemas["CompiledContext"]> {
    return this.call("memory_block", { query, ...options });
  }

  /** Render a compiled context again from its receipt, byte for byte. */
  replay(receiptId: Schemas["ReplayArguments"]["receipt_id"]): Promise<Schemas["Replayed"]> {
    return this.call("replay", { receipt_id: receiptId });
  }

  /** Return a summary of each receipt, newest first. Requires a reviewer or the owner. */
  receipts(options: Schemas["ReceiptsArguments"] = {}): Promise<Schemas["ReceiptPage"]> {
    return this.call("receipts", { ...options });
  }

  /** Return a receipt as JSON values. The receipt of a commit has each memory before and after. */
  receipt(receiptId: Schemas["ReceiptArguments"]["receipt_id"]): Promise<Schemas["AnyReceipt"]> {
    return this.call("receipt", { receipt_id: receiptId });
  }

  /** Compare what memories of this scope and below cite with what it says now, and mark what is stale. */
  check(options: Schemas["CheckArguments"] = {}): Promise<Schemas["SourceCheck"]> {
    return this.call("check", { ...options });
  }

  /** Return the checks of this installation: what was checked, whether it passed, and how to repair it. */
  doctor(): Promise<Schemas["Checks"]["items"]> {
    return this.call("doctor", {});
  }

  /** Return counts, sizes, the review queue, budget use and the state of each job, as JSON values. */
  status(): Promise<Schemas["StatusReport"]> {
    return this.call("status", {});
  }

  /** Return the persona that opens every context, its core block, and the diff to apply to its file. */
  identity(): Promise<Schemas["Identity"]> {
    return this.call("identity", {});
  }

  /** Propose the complete new text of the identity; only the owner approves it. */
  updateIdentity(text: Schemas["UpdateIdentityArguments"]["text"], options: Omit<Schemas["UpdateIdentityArguments"], "text"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("update_identity", { text, ...options });
  }

  /** Propose a new memory. If another memory has the `key`, that memory is updated instead. */
  remember(text: Schemas["RememberArguments"]["text"], options: Omit<Schemas["RememberArguments"], "text"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("remember", { text, ...options });
  }

  /** Propose new text or new fields for a memory. `if_version` makes an edit of an outdated version fail. */
  revise(memoryId: Schemas["ReviseArguments"]["memory_id"], text?: Schemas["ReviseArguments"]["text"], options: Omit<Schemas["ReviseArguments"], "memory_id" | "text"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("revise", { memory_id: memoryId, text, ...options });
  }

  /** Propose an addition to the text of a memory, on a new line. */
  append(memoryId: Schemas["AppendArguments"]["memory_id"], text: Schemas["AppendArguments"]["text"], options: Omit<Schemas["AppendArguments"], "memory_id" | "text"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("append", { memory_id: memoryId, text, ...options });
  }

  /** Propose to retire a memory, and what quotes or sums it up. `rollback` undoes it. */
  forget(memoryId: Schemas["ForgetArguments"]["memory_id"], options: Omit<Schemas["ForgetArguments"], "memory_id"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("forget", { memory_id: memoryId, ...options });
  }

  /** Propose to archive a memory. Recall and contexts leave it out until `restore` brings it back. */
  archive(memoryId: Schemas["ArchiveArguments"]["memory_id"], options: Omit<Schemas["ArchiveArguments"], "memory_id"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("archive", { memory_id: memoryId, ...options });
  }

  /** Propose to make a retired, archived, superseded or expired memory active again. */
  restore(memoryId: Schemas["RestoreArguments"]["memory_id"], options: Omit<Schemas["RestoreArguments"], "memory_id"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("restore", { memory_id: memoryId, ...options });
  }

  /** Propose to confirm a memory: the decay of its confidence starts again now. */
  reinforce(memoryId: Schemas["ReinforceArguments"]["memory_id"], options: Omit<Schemas["ReinforceArguments"], "memory_id"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("reinforce", { memory_id: memoryId, ...options });
  }

  /** Propose another tier, scope or key. */
  move(memoryId: Schemas["MoveArguments"]["memory_id"], options: Omit<Schemas["MoveArguments"], "memory_id"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("move", { memory_id: memoryId, ...options });
  }

  /** Propose to make a memory permanent, with its final text. */
  promote(memoryId: Schemas["PromoteArguments"]["memory_id"], text: Schemas["PromoteArguments"]["text"], options: Omit<Schemas["PromoteArguments"], "memory_id" | "text"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("promote", { memory_id: memoryId, text, ...options });
  }

  /** Propose to replace one memory by another. The old one becomes inactive; its history names the new one. */
  supersede(memoryId: Schemas["SupersedeArguments"]["memory_id"], by: Schemas["SupersedeArguments"]["by"], options: Omit<Schemas["SupersedeArguments"], "memory_id" | "by"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("supersede", { memory_id: memoryId, by, ...options });
  }

  /** Propose one summary that supersedes several memories. Fewer than two memories give null. */
  merge(memoryIds: Schemas["MergeArguments"]["memory_ids"], text?: Schemas["MergeArguments"]["text"], options: Omit<Schemas["MergeArguments"], "memory_ids" | "text"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"] | null> {
    return this.call("merge", { memory_ids: memoryIds, text, ...options });
  }

  /** Retire several memories in one commit. Return the outcome and the ids that do not exist. */
  forgetMany(memoryIds: Schemas["ForgetManyArguments"]["memory_ids"], options: Omit<Schemas["ForgetManyArguments"], "memory_ids"> = {}): Promise<Schemas["Forgotten"]> {
    return this.call("forget_many", { memory_ids: memoryIds, ...options });
  }

  /** Return a plan: the memories at the scope of this handle that match a text, best first. Nothing changes. */
  planForgetMatching(text: Schemas["PlanForgetMatchingArguments"]["text"]): Promise<Schemas["Forgetting"]> {
    return this.call("plan_forget_matching", { text });
  }

  /** Retire exactly the memories of the plan with this digest, in one commit. `rollback` undoes it. */
  forgetMatching(text: Schemas["ForgetMatchingArguments"]["text"], digest: Schemas["ForgetMatchingArguments"]["digest"], options: Omit<Schemas["ForgetMatchingArguments"], "text" | "digest"> = {}): Promise<Schemas["Forgetting"]> {
    return this.call("forget_matching", { text, digest, ...options });
  }

  /** Propose changes that are committed, quarantined or refused together. */
  propose(changes: Schemas["ProposeArguments"]["changes"], options: Omit<Schemas["ProposeArguments"], "changes"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("propose", { changes, ...options });
  }

  /** Propose many memories. Each item is a text, or a mapping of the arguments of `remember`. */
  rememberMany(items: Schemas["RememberManyArguments"]["items"], options: Omit<Schemas["RememberManyArguments"], "items"> = {}): Promise<Schemas["Outcomes"]["outcomes"]> {
    return this.call("remember_many", { items, ...options });
  }

  /** Add the messages of a conversation as events of a session, and propose facts found in them. */
  add(messages: Schemas["AddArguments"]["messages"], options: Omit<Schemas["AddArguments"], "messages"> = {}): Promise<Schemas["Added"]> {
    return this.call("add", { messages, ...options });
  }

  /** Record which memories of a context, or of a recall with `receipt=true`, were used and which were not. */
  feedback(receiptId: Schemas["FeedbackArguments"]["receipt_id"], options: Omit<Schemas["FeedbackArguments"], "receipt_id"> = {}): Promise<Schemas["Feedback"]> {
    return this.call("feedback", { receipt_id: receiptId, ...options });
  }

  /** Return the proposals that this handle may read, oldest first. */
  pending(options: Schemas["PendingArguments"] = {}): Promise<Schemas["Proposals"]> {
    return this.call("pending", { ...options });
  }

  /** Return a proposal in any state, by its id or the first letters of its id. */
  proposal(proposalId: Schemas["ProposalArguments"]["proposal_id"]): Promise<Schemas["Reviewed"]> {
    return this.call("proposal", { proposal_id: proposalId });
  }

  /** Return the rejected, expired and stale proposals of this actor. Each is returned once. */
  notices(): Promise<Schemas["Notices"]["items"]> {
    return this.call("notices", {});
  }

  /** Store exactly what was proposed. Requires a reviewer or the owner who is not the proposer. */
  approve(proposalId: Schemas["ApproveArguments"]["proposal_id"], options: Omit<Schemas["ApproveArguments"], "proposal_id"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("approve", { proposal_id: proposalId, ...options });
  }

  /** Approve a proposal with your own changes. The gates check the result again. */
  amend(proposalId: Schemas["AmendArguments"]["proposal_id"], text?: Schemas["AmendArguments"]["text"], options: Omit<Schemas["AmendArguments"], "proposal_id" | "text"> = {}): Promise<Schemas["Committed"] | Schemas["Quarantined"] | Schemas["Refused"] | Schemas["Duplicate"]> {
    return this.call("amend", { proposal_id: proposalId, text, ...options });
  }

  /** Make a branch at this scope; `branch(name)` is a handle on it. */
  createBranch(name: Schemas["CreateBranchArguments"]["name"], options: Omit<Schemas["CreateBranchArguments"], "name"> = {}): Promise<Schemas["Branch"]> {
    return this.call("create_branch", { name, ...options });
  }

  /** Return the open branches that this handle sees, oldest first. */
  branches(options: Schemas["BranchesArguments"] = {}): Promise<Schemas["Branches"]> {
    return this.call("branches", { ...options });
  }

  /** Return the changes of a branch: the memory there, on main now, and on main when the branch changed it. */
  branchChanges(name: Schemas["BranchChangesArguments"]["name"], options: Omit<Schemas["BranchChangesArguments"], "name"> = {}): Promise<Schemas["BranchChanges"]> {
    return this.call("branch_changes", { name, ...options });
  }

  /** Write to main what a branch changed. Every gate judges each change as a write of its author. */
  mergeBranch(name: Schemas["MergeBranchArguments"]["name"], options: Omit<Schemas["MergeBranchArguments"], "name"> = {}): Promise<Schemas["BranchMerge"]> {
    return this.call("merge_branch", { name, ...options });
  }

  /** Retire everything of a branch, in one commit, and close it. Its author and the owner may. */
  discardBranch(name: Schemas["DiscardBranchArguments"]["name"]): Promise<Schemas["Receipt"]> {
    return this.call("discard_branch", { name });
  }

  /** Reject a proposal. The memories stay as they are. */
  reject(proposalId: Schemas["RejectArguments"]["proposal_id"], options: Omit<Schemas["RejectArguments"], "proposal_id">): Promise<Schemas["Receipt"]> {
    return this.call("reject", { proposal_id: proposalId, ...options });
  }

  /** Return a rejected or expired proposal to the review queue. */
  reopen(proposalId: Schemas["ReopenArguments"]["proposal_id"], options: Omit<Schemas["ReopenArguments"], "proposal_id">): Promise<Schemas["Receipt"]> {
    return this.call("reopen", { proposal_id: proposalId, ...options });
  }

  /** Approve several proposals, each by id or by id and digest. Return one result for each, in order. */
  approveMany(items: Schemas["ApproveManyArguments"]["items"]): Promise<Schemas["Approved"]["results"]> {
    return this.call("approve_many", { items });
  }

  /** Reject several proposals for one reason. Return one result for each, in order. */
  rejectMany(ids: Schemas["RejectManyArguments"]["ids"], options: Omit<Schemas["RejectManyArguments"], "ids">): Promise<Schemas["RejectedMany"]["results"]> {
    return this.call("reject_many", { ids, ...options });
  }

  /** Return the visible commits, newest first; those that are damaged are named in `damaged` and `notes`. */
  log(options: Schemas["LogArguments"] = {}): Promise<Schemas["CommitPage"]> {
    return this.call("log", { ...options });
  }

  /** Return one commit by its number, its id, or a unique prefix of its id. */
  show(commit: Schemas["ShowArguments"]["commit"]): Promise<Schemas["CommitView"]> {
    return this.call("show", { commit });
  }

  /** Return the memories that differ between the states after two commits. `0` is the empty store. */
  diff(earlier: Schemas["DiffArguments"]["earlier"], later?: Schemas["DiffArguments"]["later"], options: Omit<Schemas["DiffArguments"], "earlier" | "later"> = {}): Promise<Schemas["Compared"]> {
    return this.call("diff", { earlier, later, ...options });
  }

  /** Undo one commit exactly. A second call changes nothing and returns the first receipt. */
  rollback(commit: Schemas["RollbackArguments"]["commit"], options: Omit<Schemas["RollbackArguments"], "commit"> = {}): Promise<Schemas["RolledBack"]> {
    return this.call("rollback", { commit, ...options });
  }

  /** Check the hash chain, all seals, all projections and the anchor. */
  verify(): Promise<Schemas["Verification"]> {
    return this.call("verify", {});
  }

  /** Rebuild the memories of this tenant from the journal. Return how many there are. */
  rebuild(): Promise<Schemas["Rebuilt"]> {
    return this.call("rebuild", {});
  }

  /** Compute terms and vectors that are missing or of another embedder. Return the number of indexed memories. */
  reindex(): Promise<Schemas["Reindexed"]> {
    return this.call("reindex", {});
  }

  /** Return what a source, actor, session, commit or memory touched. Requires a reviewer or the owner. */
  impact(options: Schemas["ImpactArguments"] = {}): Promise<Schemas["Impact"]> {
    return this.call("impact", { ...options });
  }

  /** Return everything about one person, agent or project. `left_out` says what is not in it. */
  exportSubject(name: Schemas["ExportSubjectArguments"]["name"]): Promise<Schemas["SubjectExport"]> {
    return this.call("export_subject", { name });
  }

  /** Return a plan, with a digest, to contain the memories that `impact` lists for this selection. */
  planContain(options: Schemas["PlanContainArguments"] = {}): Promise<Schemas["Containment"]> {
    return this.call("plan_contain", { ...options });
  }

  /** Apply exactly the plan with this digest in one commit, which `rollback` undoes. Requires the owner. */
  contain(digest: Schemas["ContainArguments"]["digest"], options: Omit<Schemas["ContainArguments"], "digest"> = {}): Promise<Schemas["Containment"]> {
    return this.call("contain", { digest, ...options });
  }

  /** Return, for each field of a memory, the commit, actor, source and approval of its value. */
  blame(name: Schemas["BlameArguments"]["name"]): Promise<Schemas["Blame"]> {
    return this.call("blame", { name });
  }

  /** Return pairs of memories that say nearly the same but differ, closest pairs first, with the difference. */
  contradictions(options: Schemas["ContradictionsArguments"] = {}): Promise<Schemas["Contradictions"]> {
    return this.call("contradictions", { ...options });
  }

  /** Return the first commit after which the context for a query contains a text or passes a predicate. */
  bisect(query?: Schemas["BisectArguments"]["query"], options: Omit<Schemas["BisectArguments"], "query"> = {}): Promise<Schemas["Bisection"]> {
    return this.call("bisect", { query, ...options });
  }

  /** Test what contexts contain, now or in a past state. `status` reports the newest run on the present state. */
  runTests(tests: Schemas["RunTestsArguments"]["tests"], options: Omit<Schemas["RunTestsArguments"], "tests"> = {}): Promise<Schemas["MemoryTestRun"]> {
    return this.call("run_tests", { tests, ...options });
  }

  /** Return the differences between two compiled contexts, by receipt id, and the commit that caused each. */
  contextDiff(first: Schemas["ContextDiffArguments"]["first"], second: Schemas["ContextDiffArguments"]["second"]): Promise<Schemas["ContextDifference"]> {
    return this.call("context_diff", { first, second });
  }

  /** Return a plan, with a digest, of what erasing these memories destroys. Nothing changes. */
  planErase(ids?: Schemas["PlanEraseArguments"]["ids"], options: Omit<Schemas["PlanEraseArguments"], "ids"> = {}): Promise<Schemas["ErasePlan"]> {
    return this.call("plan_erase", { ids, ...options });
  }

  /** Erase exactly what the plan with this digest lists, for the same selection. This cannot be undone. */
  erase(digest: Schemas["EraseArguments"]["digest"], ids?: Schemas["EraseArguments"]["ids"], options: Omit<Schemas["EraseArguments"], "digest" | "ids"> = {}): Promise<Schemas["Destroyed"]> {
    return this.call("erase", { digest, ids, ...options });
  }

  /** Return the certificate of an erasure, by the id of an erased memory or of the erasing commit. */
  certificate(name: Schemas["CertificateArguments"]["name"]): Promise<{ [name: string]: unknown }> {
    return this.call("certificate", { name });
  }

  /** Return what adopting this copy of a store would accept, with a digest. Nothing changes. */
  planAdopt(): Promise<Schemas["AdoptionPlan"]> {
    return this.call("plan_adopt", {});
  }

  /** Accept this copy of a store as trusted. `digest` is that of the plan you saw. */
  adopt(digest: Schemas["AdoptArguments"]["digest"]): Promise<Schemas["AdoptionPlan"]> {
    return this.call("adopt", { digest });
  }

  /** Train the reranker from all feedback, in one commit. */
  trainReranker(): Promise<Schemas["Training"]> {
    return this.call("train_reranker", {});
  }

  /** Return every job with its schedule and its last run, in the order in which they run. */
  jobs(): Promise<Schemas["Jobs"]["items"]> {
    return this.call("jobs", {});
  }

  /** Run all due jobs, or the job with this name. Requires the owner. */
  runJobs(name: Schemas["RunJobsArguments"]["name"], options: Omit<Schemas["RunJobsArguments"], "name"> = {}): Promise<Schemas["Runs"]["items"]> {
    return this.call("run_jobs", { name, ...options });
  }

  /** Return pairs of visible memories that resemble each other, most similar first. Nothing changes. */
  mergeCandidates(options: Schemas["MergeCandidatesArguments"] = {}): Promise<Schemas["Candidates"]["items"]> {
    return this.call("merge_candidates", { ...options });
  }

  /** Create a token for an actor with this name. `secret` is shown this once. */
  createToken(name: Schemas["CreateTokenArguments"]["name"], options: Omit<Schemas["CreateTokenArguments"], "name"> = {}): Promise<Schemas["IssuedToken"]> {
    return this.call("create_token", { name, ...options });
  }

  /** Return every token of the store, oldest first, without secrets. Requires the owner. */
  tokens(): Promise<Schemas["Tokens"]["items"]> {
    return this.call("tokens", {});
  }

  /** Revoke a token. Handles opened with it are refused from then on. */
  revokeToken(tokenId: Schemas["RevokeTokenArguments"]["token_id"]): Promise<Schemas["Receipt"]> {
    return this.call("revoke_token", { token_id: tokenId });
  }
}
