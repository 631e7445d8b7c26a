import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** How fast one core decrypts TLS records (AES-256-GCM, 16 KiB): once every two seconds, MB/s. */
public class Decrypt {
    public static void main(String[] arguments) throws Exception {
        var key = new SecretKeySpec(new byte[32], "AES");
        var nonce = new GCMParameterSpec(128, new byte[12]);
        var cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(Cipher.ENCRYPT_MODE, key, nonce);
        byte[] sealed = cipher.doFinal(new byte[16384]);
        for (int round = 0; round < 5; round++) {
            long begun = System.nanoTime(), records = 0;
            for (; System.nanoTime() - begun < 2_000_000_000L; records++) {
                cipher.init(Cipher.DECRYPT_MODE, key, nonce);
                cipher.doFinal(sealed);
            }
            System.out.printf("%.1f%n", records * 16384 * 1e3 / (System.nanoTime() - begun));
        }
    }
}
