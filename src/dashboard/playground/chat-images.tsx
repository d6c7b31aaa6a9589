import { useId } from "preact/hooks";
import { Button } from "../parts/button.tsx";
import { Problem } from "../parts/page.tsx";
import { useAction } from "../resource.ts";

/** Images of the next message, as data URLs; nothing is uploaded before it is sent. */
export function ChatImages({ images, onImages }: ChatImagesProps) {
  const id = useId();
  const add = useAction(async (input: HTMLInputElement) => {
    const files = [...(input.files ?? [])];
    // The same file can be chosen again.
    input.value = "";
    if (images.length + files.length > MAX_IMAGES)
      throw new Error(`A message takes ${MAX_IMAGES} images at most here.`);
    const large = files.find(({ size }) => size > MAX_IMAGE_BYTES);
    if (large !== undefined) throw new Error(`${large.name} is larger than 2 MB: choose a smaller image.`);
    onImages([...images, ...(await Promise.all(files.map(dataUrlOf)))]);
  });
  return (
    <div class="chat-images">
      <label for={id} class="button quiet">
        Add images
      </label>
      <input
        id={id}
        class="unseen"
        type="file"
        accept={IMAGE_TYPES}
        multiple
        onChange={(event) => add.run(event.currentTarget)}
      />
      {images.map((image, index) => (
        <span key={image} class="chat-image">
          <img src={image} alt={`To be sent, ${index + 1}`} />
          <Button
            label="Remove"
            about={`image ${index + 1}`}
            variant="link"
            onClick={() => onImages(images.toSpliced(index, 1))}
          />
        </span>
      ))}
      <Problem error={add.error} />
    </div>
  );
}

interface ChatImagesProps {
  readonly images: readonly string[];
  readonly onImages: (images: readonly string[]) => void;
}

/** Together below what a request may have, 10 MB, as base64. */
const MAX_IMAGES = 3;
const MAX_IMAGE_BYTES = 2_000_000;
const IMAGE_TYPES = "image/png,image/jpeg,image/webp,image/gif";

const dataUrlOf = (file: File): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
