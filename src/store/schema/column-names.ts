/**
 * Columns that the code names differently. The last release may still run on a database while this one starts, so columns
 * keep the names that they were made with.
 */
export const ANSWERED_INQUIRY = "heard";
export const NEXT_POLL_AT = "look_at";
export const ROTATION_ID = "lineage";
