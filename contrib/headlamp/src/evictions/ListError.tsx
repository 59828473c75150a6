import { Alert } from '@mui/material';

/** Why records cannot be listed, and what to do. */
export function ListError({ error }: { error: { status?: number; message?: string } }) {
  const remedy =
    error.status === 404
      ? 'the definitions of Plimsoll are not installed in this cluster'
      : 'you need get, list and watch of evictions in the group plimsoll.dev';
  return (
    <Alert severity="info">
      Records cannot be listed ({error.message || error.status}): {remedy}.
    </Alert>
  );
}
