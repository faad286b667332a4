/** The dialog that `?` opens: the keys that work on the open page. */
import { Dialog } from "../components/dialog.tsx";
import { useAllKeys } from "./keys.tsx";

export function KeyHelp({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const keys = useAllKeys(open);
  return (
    <Dialog title="Shortcuts" open={open} onClose={onClose}>
      <dl className="keys">
        {keys.map((binding) => (
          <div key={binding.keys}>
            <dt>
              {binding.keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{binding.label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
